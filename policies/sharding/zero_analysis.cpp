#include "policies/sharding/zero_analysis.h"

#include <algorithm>
#include <set>

#include "policies/trace/changed_program.h"
#include "policies/trace/dataflow.h"
#include "policies/trace/described.h"
#include "policies/trace/optimizer_step.h"
#include "sim/error.h"
#include "sim/trace/group_names.h"

namespace memwall {
namespace {

// Step counters and scales: every rank keeps its own.
constexpr Bytes kScalar = 8;

bool in_backward(Phase phase) { return phase == Phase::recompute || phase == Phase::backward; }

class ZeroAnalyzer {
 public:
  ZeroAnalyzer(const Trace& trace, const Dataflow& flow, int stage, const std::string& policy)
      : t_(trace), flow_(flow), stage_(stage), policy_(policy) {}

  ZeroAnalysis run() {
    if (stage_ > 0 && has_masked_weights(t_))
      refuse("its weights are multiplied by masks (prune), buffers that each rank has whole, which are not told from "
             "parameters; expected a step without masks.");
    collect_collectives();
    collect_passes();
    collect_storages();
    collect_trained();
    collect_gradients();
    collect_temporaries();
    collect_updates();
    require_complete();
    require_reduced_gradients();
    require_updates_after_backward();
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse(const std::string& sentence) const {
    throw UsageError("Policy '" + policy_ + "' cannot split trace '" + t_.name + "': " + sentence);
  }

  bool is_gradient_all_reduce(const Op& op) const {
    if (op.collective != CollectiveKind::all_reduce || op.use_count == 0) return false;
    for (const Use& use : t_.uses_of(op)) {
      const StorageKind kind = t_.storages[use.storage].kind;
      if (kind != StorageKind::gradient && kind != StorageKind::communication_buffer) return false;
    }
    return true;
  }

  // Of data, not of the model: exchanges of features between the ranks that hold the tables for them, sums of
  // activations between ranks that share a layer.
  bool moves_data_alone(const Op& op) const {
    const bool exchanges = op.collective == CollectiveKind::all_to_all || op.collective == CollectiveKind::send_receive;
    return op.use_count > 0 && std::ranges::all_of(t_.uses_of(op), [&](const Use& use) {
             const StorageKind kind = t_.storages[use.storage].kind;
             return kind == StorageKind::activation || kind == StorageKind::input ||
                    (exchanges && (kind == StorageKind::communication_buffer || kind == StorageKind::unknown));
           });
  }

  // Of a job of one tensor-parallel group all collectives are among ranks that hold other shares of the parameters: its
  // replicas each do the same.
  bool is_divided_by_layers() const {
    return t_.rank_table.size() == 1 && std::ranges::any_of(t_.groups, [](const ProcessGroup& group) {
             return group.name == kTensorParallelGroup && group.ranks > 1;
           });
  }

  // The first state in which several parameters lie one behind the other, as Megatron-LM and DeepSpeed flatten them.
  StorageId flat_state() const {
    std::int64_t largest = 0;
    for (const Storage& s : t_.storages)
      if (s.kind == StorageKind::parameter) largest = std::max(largest, known_elements(t_.shapes[s.shape]));
    for (StorageId id = 0; id < t_.storages.size(); ++id)
      if (const Storage& s = t_.storages[id];
          s.kind == StorageKind::optimizer_state && known_elements(t_.shapes[s.shape]) > largest)
        return id;
    return kNoStorage;
  }

  void require_divisible_replicas() const {
    if (const StorageId flat = stage_ == 3 ? flat_state() : kNoStorage; flat != kNoStorage)
      refuse("its layers are divided over tensor-parallel ranks, and all parameters that a rank has are updated from " +
             described_storage(t_, flat) +
             "; to share parameters beside that is not implemented. Expected stage 0, 1 or 2 of optimizer states and "
             "gradients, or a job whose parameters have states of their own (parallel_framework=torchtitan).");
    for (StorageId id = 0; id < t_.storages.size(); ++id)
      if (const Storage& s = t_.storages[id]; s.preexisting && s.kind == StorageKind::gradient && s.bytes > kScalar)
        refuse("its gradients add up in a buffer (" + described_storage(t_, id) +
               "), which the framework of this policy does not have; expected main_gradients=none in the job.");
  }

  void collect_collectives() {
    if (is_divided_by_layers()) return require_divisible_replicas();
    std::vector<OpId> all_reduces;
    for (OpId id = 0; id < t_.ops.size(); ++id) {
      const Op& op = t_.ops[id];
      if (op.kind != OpKind::collective) continue;
      const std::string what = "op " + std::to_string(id) + " ('" + t_.strings[op.name] + "', " +
                               std::string(to_string(op.collective)) + ")";
      if (!is_gradient_all_reduce(op)) {
        if (!moves_data_alone(op))
          refuse(
              what +
              " is neither an all-reduce of gradients nor an exchange of activations; expected a capture of one GPU, "
              "or of data parallel training without ZeRO or FSDP.");
        result_.own_collectives.push_back(id);
        continue;
      }
      if (stage_ == 0)
        refuse(what + " already all-reduces gradients, which is what " +
               (policy_ == "zero" ? "stage=0 would add; expected stage=1, 2 or 3."
                                  : "this policy would add; expected a capture of one GPU."));
      all_reduces.push_back(id);
    }
    result_.replaced = find_replaced_reduction(t_, flow_, std::move(all_reduces));
  }

  void collect_passes() {
    for (const Pass& pass : passes(t_)) {
      BackwardPass p;
      p.pass = pass;
      for (OpId id = pass.backward; id < pass.end; ++id) {
        if (t_.ops[id].phase == Phase::backward) p.last_backward = id;
        if (t_.ops[id].phase == Phase::optimizer) p.before_update = true;
      }
      result_.passes.push_back(std::move(p));
    }
    if (result_.passes.empty()) refuse("it has no forward pass followed by a backward pass.");
    result_.passes.back().before_update = true;  // nobody else could reduce what it leaves
  }

  void collect_storages() {
    for (StorageId id = 0; id < t_.storages.size(); ++id) {
      const Storage& s = t_.storages[id];
      const bool is_state = s.kind == StorageKind::optimizer_state && s.bytes > kScalar;
      if (!is_state && s.kind != StorageKind::parameter) continue;
      if (is_state)
        (is_of_a_table(id) ? result_.table_states : result_.states).push_back(id);
      else
        (stays_whole(id) ? result_.replicated : result_.parameters).push_back(id);
    }
  }

  // Running statistics, which every rank keeps; and where ranks hold different parts of the model, what no optimizer
  // step writes: tables that kernels of backward update.
  bool stays_whole(StorageId parameter) const {
    const auto writers = flow_.writers(parameter);
    const auto in_optimizer = [this](OpId op) { return t_.ops[op].phase == Phase::optimizer; };
    return !std::ranges::all_of(writers, in_optimizer) || (!result_.own_collectives.empty() && writers.empty());
  }

  // Frozen parameters (those beside LoRA's) are in no optimizer's list: they have neither states nor gradients.
  void collect_trained() {
    for (const StorageId id : result_.parameters)
      if (!flow_.writers(id).empty()) result_.trained.push_back(id);
    if (result_.trained.empty()) result_.trained = result_.parameters;
  }

  // Of such tables: whatever uses it is no op of an optimizer step.
  bool is_of_a_table(StorageId state) const {
    return !result_.own_collectives.empty() && std::ranges::none_of(flow_.touches(state), [this](const Touch& touch) {
      return t_.ops[touch.op].phase == Phase::optimizer;
    });
  }

  // Where ranks hold different parts of the model, a gradient that the step does not sum over them is of a part that is
  // this rank's alone, and nobody knows which parameters and states go with it.
  void require_reduced_gradients() const {
    if (result_.own_collectives.empty() || result_.replaced.all_reduces.empty()) return;
    for (const BackwardPass& pass : result_.passes)
      for (const GradientMade& made : pass.made)
        if (!is_reduced(made.gradient))
          refuse("gradient " + described_storage(t_, made.gradient) +
                 " is of no all-reduce, so that its parameter is this rank's alone (model parallel), as the step's " +
                 std::string(to_string(t_.ops[result_.own_collectives.front()].collective)) +
                 " says; expected all gradients to be summed over the ranks.");
  }

  // Does the storage live on after this pass, as a gradient that somebody is to use?
  bool outlives(StorageId id, const BackwardPass& pass) const {
    const OpId free = flow_.free(id);
    if (free == kNoOp || free > pass.last_backward) return true;
    for (const Touch& touch : flow_.touches(id))
      if (touch.op > pass.pass.backward && t_.ops[touch.op].phase == Phase::optimizer) return true;
    return false;
  }

  GradientMade made_in(StorageId id, const BackwardPass& pass) const {
    GradientMade made;
    for (const Touch& touch : flow_.touches(id)) {
      if (touch.op < pass.pass.backward || touch.op > pass.last_backward) continue;
      if (!in_backward(t_.ops[touch.op].phase) || result_.replaced.has(touch.op)) continue;
      const bool writes = touch.writes;
      if (made.first_write == kNoOp && writes) made.first_write = touch.op;
      made.ready = touch.op;
    }
    if (made.first_write == kNoOp) return {};
    made.gradient = id;
    for (const Touch& touch : flow_.touches(id))
      made.accumulates |= touch.reads && touch.op >= pass.pass.backward && touch.op <= made.first_write;
    return made;
  }

  bool is_reduced(StorageId id) const {
    return std::ranges::any_of(flow_.touches(id), [&](const Touch& touch) { return result_.replaced.has(touch.op); });
  }

  // DDP's gradient_as_bucket_view: what backward makes goes into a bucket that is summed and updated from, and is no
  // gradient any more.
  bool goes_into_a_bucket(StorageId id) const {
    bool goes = false;
    for (const Touch& touch : flow_.touches(id)) {
      const Op& op = t_.ops[touch.op];
      if (op.phase == Phase::optimizer || result_.replaced.has(touch.op)) return false;
      for (const Use& use : t_.uses_of(op))
        goes |= touch.reads && use.access == Access::write && use.storage != id && op.phase == Phase::backward &&
                t_.storages[use.storage].kind == StorageKind::gradient && is_reduced(use.storage);
    }
    return goes;
  }

  void collect_gradients() {
    std::set<StorageId> gradients;
    for (StorageId id = 0; id < t_.storages.size(); ++id) {
      if (t_.storages[id].kind != StorageKind::gradient || goes_into_a_bucket(id)) continue;
      bool made_in_a_pass = false;
      for (BackwardPass& pass : result_.passes) {
        const GradientMade made = made_in(id, pass);
        made_in_a_pass |= made.gradient != kNoStorage;
        if (made.gradient == kNoStorage || !outlives(id, pass)) continue;
        pass.made.push_back(made);
        gradients.insert(id);
      }
      if (!made_in_a_pass) gradients.insert(id);  // of an unused parameter: only the optimizer knows it
    }
    for (BackwardPass& pass : result_.passes)
      std::stable_sort(pass.made.begin(), pass.made.end(),
                       [](const GradientMade& a, const GradientMade& b) { return a.ready < b.ready; });
    result_.gradients.assign(gradients.begin(), gradients.end());
  }

  // A foreach optimizer keeps intermediates as large as what it updates; their shapes follow its share.
  void collect_temporaries() {
    std::set<Bytes> sizes;
    for (const auto* group : {&result_.parameters, &result_.gradients, &result_.states})
      for (const StorageId id : *group)
        if (t_.storages[id].bytes > kScalar) sizes.insert(t_.storages[id].bytes);
    const Optimizer optimizer = find_optimizer(t_, flow_);
    for (const StorageId id : optimizer.temporaries)
      if (sizes.contains(t_.storages[id].bytes)) result_.temporaries.push_back(id);
  }

  void collect_updates() {
    std::vector<std::uint8_t> split(t_.storages.size(), 0);  // 1: touching it makes an update; 2: only in the optimizer
    for (const auto* group : {&result_.gradients, &result_.states, &result_.temporaries})
      for (const StorageId id : *group) split[id] = 1;
    for (const StorageId id : result_.parameters) split[id] = 2;
    for (OpId id = 0; id < t_.ops.size(); ++id) {
      const Op& op = t_.ops[id];
      if (!runs_on_device(op.kind) || op.kind == OpKind::collective || in_backward(op.phase)) continue;
      const auto uses = t_.uses_of(op);
      const bool touches = std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
        return split[use.storage] == 1 || (split[use.storage] == 2 && op.phase == Phase::optimizer);
      });
      if (touches) result_.updates.push_back(id);
    }
  }

  // A bucket closes after its last gradient; an update that runs before that would use a gradient not yet reduced.
  void require_updates_after_backward() const {
    for (const BackwardPass& pass : result_.passes) {
      const auto first = std::upper_bound(result_.updates.begin(), result_.updates.end(), pass.pass.backward);
      if (first == result_.updates.end() || pass.last_backward == kNoOp || *first > pass.last_backward) continue;
      refuse("op " + std::to_string(*first) + " ('" + t_.strings[t_.ops[*first].name] +
             "') updates parameters while backward still runs (optimizer in backward); expected the optimizer step "
             "after backward.");
    }
  }

  void require_complete() const {
    if (result_.parameters.empty())
      refuse("no storage is known to be a parameter; expected a trace joined with an ExecutionTrace (--et).");
    const bool any = std::any_of(result_.passes.begin(), result_.passes.end(),
                                 [](const BackwardPass& pass) { return !pass.made.empty(); });
    if (!any)
      refuse(
          "no backward pass is known to make the gradient of a parameter; expected storages of kind gradient that "
          "outlive it.");
    if (stage_ > 0 && result_.updates.empty())
      refuse(
          "it has no optimizer step, so there is no update to split; expected ops of the phase optimizer that use "
          "parameters, gradients or states.");
  }

  const Trace& t_;
  const Dataflow& flow_;
  int stage_;
  const std::string& policy_;
  ZeroAnalysis result_;
};

}  // namespace

bool ZeroAnalysis::updates_between(OpId before, OpId after) const {
  const auto next = std::upper_bound(updates.begin(), updates.end(), before);
  return next != updates.end() && *next < after;
}

ZeroAnalysis analyze_for_zero(const Trace& trace, const Dataflow& flow, int stage, const std::string& policy) {
  return ZeroAnalyzer(trace, flow, stage, policy).run();
}

PolicyAnswer answer_for_zero(const Trace& trace, const std::string& policy) {
  const Dataflow flow(trace);
  const auto refusal_of = [&](int stage) -> std::string {
    try {
      analyze_for_zero(trace, flow, stage, policy);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  std::string refusal = refusal_of(3);
  if (refusal.empty()) return {};
  if (!refusal_of(2).empty()) return {std::move(refusal), {}, {}};
  return {{}, "stage=2", "stages 0 and 1 are taken as well, stage 3 is refused"};
}

}  // namespace memwall
