#include "policies/recipe/repeated_passes.h"

#include <algorithm>
#include <map>
#include <set>

#include "policies/recipe/modelled_op.h"
#include "sim/trace/trace_builder.h"

namespace memwall {
namespace {

constexpr StorageId kSame = kNoStorage;  // of the table of stand-ins

// At least one, as a number has.
std::int64_t elements_in(const Trace& t, StorageId id, Bytes width) {
  const Storage& s = t.storages[id];
  return s.shape == 0 ? s.bytes / width : std::max<std::int64_t>(1, elements_of(t.shapes[s.shape]));
}

class PassRepeater {
 public:
  PassRepeater(const Trace& trace, std::uint32_t times, const Machine& machine, const Pricer& pricer)
      : t_(trace),
        times_(times),
        costs_(machine.host),
        pricer_(pricer),
        builder_(TraceBuilder::like(trace)),
        new_id_(trace.ops.size(), kNoOp),
        stand_in_(trace.storages.size(), kSame) {}

  Trace run(const std::vector<RepeatedPass>& passes) {
    OpId next = 0;
    for (const RepeatedPass& pass : passes) {
      for (; next < pass.end; ++next) append(next);
      note_references(pass.begin, pass.end);
      for (std::uint32_t k = 1; k < times_; ++k) repeat(pass);
    }
    for (; next < t_.ops.size(); ++next) append(next);
    note_references(0, static_cast<OpId>(t_.ops.size()));
    Trace& out = builder_.trace();
    out.steps = t_.steps;
    for (Step& step : out.steps) step = {step.name, position(step.first), position(step.last)};
    return std::move(builder_).finish();
  }

 private:
  OpId position(OpId id) { return id < new_id_.size() ? new_id_[id] : static_cast<OpId>(builder_.trace().ops.size()); }

  StorageId now(StorageId id) const { return stand_in_[id] == kSame ? id : stand_in_[id]; }

  StorageId copy_of(StorageId id) {
    Trace& out = builder_.trace();
    out.storages.push_back(t_.storages[id]);
    out.storages.back().last_referenced = kNoOp;
    return stand_in_[id] = static_cast<StorageId>(out.storages.size() - 1);
  }

  void append(OpId id) {
    Op op = t_.ops[id];
    if (op.kind == OpKind::alloc || op.kind == OpKind::free) op.target = now(op.target);
    if (op.kind == OpKind::hand_over) op.target = new_id_[op.target];
    if (op.source != kNoOp) op.source = new_id_[op.source];
    const auto event = events_.find(op.target);
    const bool has_event =
        op.kind == OpKind::event_record || op.kind == OpKind::event_wait || op.wait_for == WaitFor::event;
    if (has_event && event != events_.end()) op.target = event->second;
    uses_.assign(t_.uses_of(t_.ops[id]).begin(), t_.uses_of(t_.ops[id]).end());
    for (Use& use : uses_) use.storage = now(use.storage);
    new_id_[id] = builder_.append_renewed(op, uses_);
  }

  void repeat(const RepeatedPass& pass) {
    sums_behind_.clear();
    not_copied_.clear();
    renewed_.clear();
    kept_.clear();
    for (const AccumulatedGradient& g : pass.gradients) {
      const bool copied = g.copied_from != kNoStorage;
      kept_[g.gradient] = now(g.gradient);
      sums_behind_.emplace(copied ? g.last_writer : g.node_end, &g);
      if (copied) not_copied_.insert(g.gradient);
    }
    std::map<StorageId, StorageId> before = renew(pass);
    for (OpId id = pass.begin; id < pass.end; ++id) {
      if (!makes_a_copy(t_.ops[id]) && !frees_for_good(t_.ops[id])) append(id);
      free_replaced(pass, id, before);
      const auto [first, last] = sums_behind_.equal_range(id);
      for (auto sum = first; sum != last; ++sum) add_up(*sum->second);
    }
    note_references(pass.begin, pass.end);
  }

  // Storages of this round for all that the pass allocates, events for all that it records. Returns what the round
  // before has left and this one makes again.
  std::map<StorageId, StorageId> renew(const RepeatedPass& pass) {
    std::map<StorageId, StorageId> before;
    std::vector<StorageId> freed;
    for (OpId id = pass.begin; id < pass.end; ++id) {
      const Op& op = t_.ops[id];
      if (op.kind == OpKind::alloc && !t_.storages[op.target].preexisting) {
        renewed_.insert(op.target);
        if (not_copied_.contains(op.target)) continue;
        if (!kept_.contains(op.target)) before.emplace(op.target, now(op.target));
        copy_of(op.target);
      }
      if (op.kind == OpKind::free) freed.push_back(op.target);
      if (op.kind == OpKind::event_record) events_[op.target] = builder_.add_event();
    }
    for (const StorageId id : freed) before.erase(id);
    for (const AccumulatedGradient& g : pass.gradients)
      if (g.copied_from == kNoStorage) make_temporary(g);
    return before;
  }

  // What is added to a gradient: no gradient itself.
  void make_temporary(const AccumulatedGradient& g) {
    Storage& storage = builder_.trace().storages[stand_in_[g.gradient]];
    storage.kind = StorageKind::workspace;
    storage.label = t_.ops[g.first_writer].operator_name;
  }

  // Of a gradient that is added instead: its alloc, and the op that copies.
  bool makes_a_copy(const Op& op) const {
    if (op.kind == OpKind::alloc) return not_copied_.contains(op.target);
    const auto uses = t_.uses_of(op);
    return op.use_count == 2 && std::ranges::any_of(uses, [&](const Use& use) {
             return use.access == Access::write && not_copied_.contains(use.storage);
           });
  }

  // What was there before the pass is given back once.
  bool frees_for_good(const Op& op) const { return op.kind == OpKind::free && !renewed_.contains(op.target); }

  // What the round before has left goes once the program has the new one.
  void free_replaced(const RepeatedPass& pass, OpId id, std::map<StorageId, StorageId>& before) {
    const auto drop = [&](StorageId storage) {
      const auto found = before.find(storage);
      if (found == before.end()) return;
      free(found->second, t_.ops[id]);
      before.erase(found);
    };
    if (id == pass.loss_assigned) drop(pass.loss);
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (use.access == Access::write && use.storage != pass.loss) drop(use.storage);
  }

  void add_up(const AccumulatedGradient& g) {
    const Op& writer = t_.ops[g.last_writer];
    const StorageId kept = kept_.at(g.gradient);
    const bool copied = g.copied_from != kNoStorage;
    const StorageId more = copied ? now(g.copied_from) : now(g.gradient);
    Op op = modelled_op(OpKind::kernel, writer);
    op.name = op.operator_name = builder_.trace().strings.intern("aten::add_");
    op.operator_class = OperatorClass::elementwise;
    const Bytes width = bytes_of(writer.data_type) > 0 ? bytes_of(writer.data_type) : 4;
    const std::int64_t elements = elements_in(t_, g.gradient, width);
    const Bytes bytes = t_.storages[g.gradient].bytes;
    op.data_type = bytes == elements * width ? writer.data_type
                   : bytes == 2 * elements   ? DataType::bf16
                                             : DataType::fp32;
    op.flops = static_cast<double>(elements);
    op.shape = builder_.trace().shapes.intern({elements});
    op.bytes = 3 * bytes;
    op.framework_calls = 1;
    op.host_gap = costs_.eager_backward;
    op.host_cost = costs_.launch;
    op.duration = pricer_.kernel(op, builder_.trace().shapes[op.shape]);
    const Use uses[] = {{kept, 0, Access::read}, {more, 0, Access::read}, {kept, 0, Access::write}};
    builder_.append_renewed(op, uses);
    if (!copied) free(more, writer);
    stand_in_[g.gradient] = kept;  // from here on
  }

  void free(StorageId storage, const Op& like) {
    Op op = modelled_op(OpKind::free, like);
    op.target = storage;
    op.stream = builder_.trace().storages[storage].stream;
    op.host_cost = costs_.allocator_call;
    builder_.append(op);
  }

  // Which op of [begin, end), as it stands now, the storages of now are referred to by for the last time.
  void note_references(OpId begin, OpId end) {
    Trace& out = builder_.trace();
    for (StorageId id = 0; id < t_.storages.size(); ++id) {
      const OpId last = t_.storages[id].last_referenced;
      OpId& noted = out.storages[now(id)].last_referenced;
      if (last != kNoOp && last >= begin && last < end && noted == kNoOp) noted = new_id_[last];
    }
  }

  const Trace& t_;
  const std::uint32_t times_;
  const HostCosts& costs_;
  const Pricer& pricer_;
  TraceBuilder builder_;
  std::vector<OpId> new_id_;         // of a base op: where it stands, in the newest round
  std::vector<StorageId> stand_in_;  // of a base storage: what stands for it now
  std::map<std::uint32_t, std::uint32_t> events_;
  std::map<StorageId, StorageId> kept_;  // gradients: what they add up in
  std::multimap<OpId, const AccumulatedGradient*> sums_behind_;
  std::set<StorageId> not_copied_;  // gradients of which this round makes none
  std::set<StorageId> renewed_;     // allocated by the pass
  std::vector<Use> uses_;
};

}  // namespace

Trace with_repeated_passes(const Trace& trace, const std::vector<RepeatedPass>& passes, std::uint32_t times,
                           const Machine& machine, const Pricer& pricer) {
  return PassRepeater(trace, times, machine, pricer).run(passes);
}

}  // namespace memwall
