// What if the network were made of reversible blocks? Then backward computes each block's input from its output.
//
// Gomez, Ren, Urtasun, Grosse 2017, "The Reversible Residual Network: Backpropagation Without Storing Activations"
// (NeurIPS 2017); Kitaev, Kaiser, Levskaya 2020, "Reformer" (ICLR 2020); details from memory of the papers, not checked
// against their code. A block (x1, x2) -> (x1 + F(x2), x2 + G(x1 + F(x2))) has an inverse that calls F and G once each.
// So nothing of the blocks stays until backward but the output of the last: before backward of a block its F and G run
// again, and give back its input, which takes the place of its output for the block before it.
//
// This changes the network: no step that keeps to this trace could do it, since the residual blocks of the trace have
// no such inverse. It is a rewriter and no memory plan, because a plan's re-runs start from what is kept, and cannot
// start from what comes behind. The step that it makes has the kernels of each block once more, in the order of its
// forward, and one kernel per block that reads output and update and writes the input; in truth that is two, of half
// the size, between F and G. Blocks are the repeated modules. One whose input and output differ in size, as where a
// ResNet halves its images, is no reversible block there either: its input stays, and it is a checkpointed block.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "policies/plan/plan_writer.h"
#include "policies/recompute/recompute.h"
#include "policies/trace/passes_in_turn.h"
#include "policies/trace/rerun_rules.h"
#include "policies/trace/trace_edit.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

// A block of the base trace.
struct ReversibleBlock {
  std::vector<StorageId> input, output;  // that forward hands on, ascending
  bool is_reversible = false;
};

std::vector<ReversibleBlock> blocks_of(const Trace& t, const Dataflow& flow, const Pass& pass,
                                       const std::vector<RecomputeUnit>& units) {
  std::vector<ReversibleBlock> blocks(units.size());
  const auto unit_at = [&](OpId id) {
    for (std::size_t k = 0; k < units.size(); ++k)
      if (std::ranges::binary_search(units[k].ops, id)) return static_cast<int>(k);
    return -1;
  };
  for (StorageId s = 0; s < t.storages.size(); ++s) {
    if (t.storages[s].bytes == 0 || !is_forward_intermediate(t, flow, pass, s)) continue;
    int writer = -1, reader = -1;
    bool is_one_hand = true, reads_behind = false;
    for (const Touch& touch : flow.touches(s)) {
      if (touch.op >= pass.backward) break;
      const int unit = unit_at(touch.op);
      if (touch.writes) {
        writer = unit;
      } else if (unit >= 0 && unit != writer) {
        is_one_hand = is_one_hand && (reader < 0 || reader == unit);
        reader = unit;
      } else if (unit < 0) {
        reads_behind = true;
      }
    }
    if (!is_one_hand) continue;  // a mask that all of them read
    if (reader >= 0 && (writer == reader - 1)) blocks[static_cast<std::size_t>(reader)].input.push_back(s);
    if (writer >= 0 && (reader == writer + 1 || (reader < 0 && reads_behind)))
      blocks[static_cast<std::size_t>(writer)].output.push_back(s);
  }
  for (ReversibleBlock& block : blocks) {
    Bytes in = 0, out = 0;
    for (const StorageId s : block.input) in += t.storages[s].bytes;
    for (const StorageId s : block.output) out += t.storages[s].bytes;
    block.is_reversible = in > 0 && in == out;
  }
  return blocks;
}

// Puts the inverses into a step whose blocks are checkpointed.
class Inverses {
 public:
  Inverses(const Trace& checkpointed, const Machine& machine, const Pricer& pricer)
      : t_(checkpointed), flow_(checkpointed), pricer_(pricer), edit_(checkpointed, machine.host) {}

  // Ascending blocks of one pass; backward of the last comes first.
  void add(const std::vector<ReversibleBlock>& blocks) {
    now_.clear();
    for (std::size_t k = blocks.size(); k-- > 0;)
      if (blocks[k].is_reversible) invert(blocks[k]);
  }

  std::size_t inverted() const { return inverted_; }
  Bytes bytes() const { return bytes_; }
  Trace apply() && { return std::move(edit_).apply(); }

 private:
  struct Lifetime {
    OpId last = kNoOp;   // in forward
    OpId first = kNoOp;  // behind it
  };

  std::optional<Lifetime> lifetime(StorageId s) const {
    Lifetime found;
    for (const Touch& touch : flow_.touches(s)) {
      if (t_.ops[touch.op].phase == Phase::forward)
        found.last = touch.op;
      else if (found.first == kNoOp)
        found.first = touch.op;
      if (found.first != kNoOp && touch.writes) return std::nullopt;
    }
    if (found.last == kNoOp || found.first == kNoOp || found.first < found.last) return std::nullopt;
    return found;
  }

  void invert(const ReversibleBlock& block) {
    OpId first = kNoOp;
    for (const StorageId s : block.input) {
      const auto life = lifetime(s);
      if (!life) return;  // nothing of backward reads it: it is gone already
      first = std::min(first, life->first);
    }
    const InsertionPoint point{insertion_point(t_, first), false};
    std::vector<Use> uses;
    Bytes touched = 0;
    for (const StorageId s : block.output) {
      const StorageId present = stand_in(s);
      uses.push_back({present, 0, Access::read});
      touched += 2 * t_.storages[s].bytes;  // and the update
    }
    std::vector<StorageId> again;
    for (const StorageId s : block.input) {
      again.push_back(edit_.builder().add_storage(t_.storages[s].bytes, t_.storages[s].kind,
                                                  t_.places[t_.storages[s].place], "reversible.input"));
      edit_.tables().storages[again.back()].stream = t_.storages[s].stream;
      edit_.alloc(point, again.back());
      uses.push_back({again.back(), 0, Access::write});
      touched += t_.storages[s].bytes;
    }
    edit_.insert(point, inverse(first, touched), uses);
    for (const StorageId s : block.output) give_back_behind(s, point);
    for (std::size_t i = 0; i < again.size(); ++i) replace(block.input[i], again[i]);
    ++inverted_;
  }

  Op inverse(OpId beside, Bytes touched) {
    Op op;
    op.kind = OpKind::kernel;
    op.stream = t_.ops[beside].stream;
    op.name = edit_.tables().strings.intern("reversible.inverse");
    op.operator_name = op.name;
    op.module = t_.ops[beside].module;
    op.host_cost = edit_.costs().launch;
    op.operator_class = OperatorClass::elementwise;
    op.bytes = touched;
    op.duration = pricer_.kernel(op);
    return op;
  }

  StorageId stand_in(StorageId s) const {
    const auto found = now_.find(s);
    return found == now_.end() ? s : found->second;
  }

  // The inverse is the last that needs the output: where the program gives it back earlier, behind that.
  void give_back_behind(StorageId s, const InsertionPoint& point) {
    const OpId freed = flow_.free(s);
    if (freed == kNoOp || freed >= point.op) return;
    edit_.remove(freed);
    edit_.free(point, stand_in(s));
  }

  // From its last use in forward until backward it is away; then `again` takes its place.
  void replace(StorageId s, StorageId again) {
    const Lifetime life = *lifetime(s);
    edit_.free({last_of_graph(t_, life.last), true}, s);
    for (const Touch& touch : flow_.touches(s))
      if (touch.op >= life.first) edit_.repoint(touch.op, s, again);
    if (const OpId freed = flow_.free(s); freed != kNoOp) edit_.repoint(freed, s, again);
    now_[s] = again;
    bytes_ += t_.storages[s].bytes;
  }

  const Trace& t_;
  const Dataflow flow_;
  const Pricer& pricer_;
  TraceEdit edit_;
  std::map<StorageId, StorageId> now_;  // what stands for it in backward
  std::size_t inverted_ = 0;
  Bytes bytes_ = 0;
};

class Reversible : public Rewriter {
 public:
  Knowledge needs() const override { return {.modules = true}; }

  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    if (restriction())
      throw UsageError("Policy 'reversible' asks what another network would do: no program of this one executes it.");
    const Dataflow flow(trace);
    RecomputePlan plan;
    plan.kept_until.assign(trace.storages.size(), 0);
    std::vector<std::vector<ReversibleBlock>> passes_blocks;
    std::size_t count = 0;
    for (const Pass& pass : passes_in_turn(trace)) {
      const std::vector<RecomputeUnit> units = block_units(trace, flow, pass);
      const std::size_t first = plan.units.size();
      plan_recompute(trace, flow, pass, units, {}, plan);
      passes_blocks.push_back(blocks_of(trace, flow, pass, units));
      for (std::size_t k = 0; k < units.size(); ++k)
        if (plan.units[first + k].rerun.empty()) passes_blocks.back()[k].is_reversible = false;
      count += units.size();
    }
    require_blocks(trace, plan, passes_blocks);
    TraceEdit edit(trace, machine.host);
    write_plan(memory_plan_of(trace, flow, plan), flow, pricer, edit);
    const Trace checkpointed = std::move(edit).apply();
    Inverses inverses(checkpointed, machine, pricer);
    for (const std::vector<ReversibleBlock>& blocks : passes_blocks) inverses.add(blocks);
    const std::size_t inverted = inverses.inverted();
    const Bytes bytes = inverses.bytes();
    Trace result = std::move(inverses).apply();
    result.notes.push_back("reversible: what if the network had reversible blocks; no plan executes this training. " +
                           std::to_string(inverted) + " of " + counted_text(count, "block") + " get their input (" +
                           human_bytes(bytes) + " together) from their output.");
    return result;
  }

 private:
  static void require_blocks(const Trace& trace, const RecomputePlan& plan,
                             const std::vector<std::vector<ReversibleBlock>>& all) {
    for (const auto& blocks : all)
      if (std::ranges::any_of(blocks, &ReversibleBlock::is_reversible)) return;
    const std::string start = "Policy 'reversible' has no meaning for trace '" + trace.name + "': ";
    if (plan.units.empty())
      throw UsageError(start + "no forward of it has repeated modules, with a backward behind it.");
    for (const UnitPlan& unit : plan.units)
      if (!unit.refusal.empty()) throw UsageError(start + unit.name + ": " + unit.refusal);
    throw UsageError(start + "no repeated module of it hands on as many bytes as it is given.");
  }
};

const RegisterPolicy registered_reversible{
    {.name = "reversible",
     .sentence = "asks what reversible blocks would do: their inputs come from their outputs (Gomez et al. 2017)",
     .kind = PolicyKind::memory_plan,
     .needs = {.timing = true, .allocations = true, .dataflow = true},
     .make_rewriter = [](const PolicyArguments&) { return std::make_unique<Reversible>(); }}};

}  // namespace
}  // namespace memwall
