#include "policies/trace/optimizer_step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace memwall {
namespace {

class OptimizerFinder {
 public:
  OptimizerFinder(const Trace& trace, const Dataflow& flow)
      : t_(trace), flow_(flow), member_(trace.ops.size(), false) {}

  Optimizer run() {
    seed();
    while (!pending_.empty()) spread();
    Optimizer result;
    result.temporaries.assign(temporaries_.begin(), temporaries_.end());
    collect(result);
    return result;
  }

 private:
  bool could_belong(OpId id) const {
    return t_.ops[id].phase == Phase::optimizer && runs_on_device(t_.ops[id].kind) && !t_.ops[id].added;
  }

  void join(OpId id) {
    if (member_[id]) return;
    member_[id] = true;
    pending_.push_back(id);
  }

  void seed() {
    for (OpId id = 0; id < t_.ops.size(); ++id) {
      if (!could_belong(id) || t_.ops[id].kind == OpKind::collective) continue;
      for (const Use& use : t_.uses_of(t_.ops[id])) {
        const StorageKind kind = t_.storages[use.storage].kind;
        if (kind == StorageKind::optimizer_state || (kind == StorageKind::parameter && use.access == Access::write))
          join(id);
      }
    }
  }

  // Something that only optimizer ops touch, and no state, parameter or gradient.
  bool is_temporary(StorageId id) const {
    const StorageKind kind = t_.storages[id].kind;
    if (kind == StorageKind::optimizer_state || kind == StorageKind::parameter || kind == StorageKind::gradient ||
        kind == StorageKind::input || t_.storages[id].preexisting)
      return false;
    const auto touches = flow_.touches(id);
    return std::all_of(touches.begin(), touches.end(), [this](const Touch& touch) { return could_belong(touch.op); });
  }

  void spread() {
    const OpId id = pending_.back();
    pending_.pop_back();
    for (const Use& use : t_.uses_of(t_.ops[id])) {
      if (temporaries_.contains(use.storage) || !is_temporary(use.storage)) continue;
      temporaries_.insert(use.storage);
      for (const Touch& touch : flow_.touches(use.storage)) join(touch.op);
    }
  }

  void collect(Optimizer& result) const {
    std::map<std::uint32_t, OptimizerStep> by_run;
    for (OpId id = 0; id < t_.ops.size(); ++id)
      if (member_[id]) by_run[flow_.phases().of(id)].ops.push_back(id);
    for (auto& [run, step] : by_run) {
      std::set<StorageId> states, parameters, gradients;
      for (const OpId id : step.ops)
        for (const Use& use : t_.uses_of(t_.ops[id])) {
          const StorageKind kind = t_.storages[use.storage].kind;
          if (kind == StorageKind::optimizer_state)
            states.insert(use.storage);
          else if (kind == StorageKind::parameter && use.access == Access::write)
            parameters.insert(use.storage);
          else if (kind != StorageKind::parameter && kind != StorageKind::input && use.access == Access::read &&
                   !temporaries_.contains(use.storage))
            gradients.insert(use.storage);
        }
      step.states.assign(states.begin(), states.end());
      step.parameters.assign(parameters.begin(), parameters.end());
      step.gradients.assign(gradients.begin(), gradients.end());
      if (!step.states.empty()) result.steps.push_back(std::move(step));
    }
  }

  const Trace& t_;
  const Dataflow& flow_;
  std::vector<bool> member_;
  std::vector<OpId> pending_;
  std::set<StorageId> temporaries_;
};

// 2 or 4 by the data type of the kernels that read the parameters in forward; 0 if none says.
int element_size(const Trace& t, const Dataflow& flow, const std::vector<StorageId>& parameters) {
  int half = 0, full = 0;
  for (const StorageId id : parameters)
    for (const Touch& touch : flow.touches(id)) {
      const Op& op = t.ops[touch.op];
      if (op.phase != Phase::forward || !touch.reads) continue;
      if (op.data_type == DataType::fp16 || op.data_type == DataType::bf16) ++half;
      if (op.data_type == DataType::fp32 || op.data_type == DataType::tf32) ++full;
    }
  if (half == 0 && full == 0) return 0;
  return half > full ? 2 : 4;
}

// Of the parameters that the step writes, what this rank updates: all, unless the ranks gather them afterwards, each
// its part. 0: a part, but of how many ranks is not known.
double updated_share(const Trace& t, const OptimizerStep& step) {
  for (OpId id = step.ops.front(); id < t.ops.size(); ++id) {
    const Op& op = t.ops[id];
    if (op.collective != CollectiveKind::all_gather) continue;
    for (const Use& use : t.uses_of(op)) {
      if (use.access != Access::write || !std::ranges::binary_search(step.parameters, use.storage)) continue;
      const std::uint32_t ranks = t.ranks > 1 ? t.ranks : op.group < t.groups.size() ? t.groups[op.group].ranks : 0;
      return ranks > 0 ? 1.0 / ranks : 0;
    }
  }
  return 1;
}

double total_bytes(const Trace& t, const std::vector<StorageId>& storages) {
  double sum = 0;
  for (const StorageId id : storages) sum += static_cast<double>(t.storages[id].bytes);
  return sum;
}

}  // namespace

Optimizer find_optimizer(const Trace& trace, const Dataflow& flow) { return OptimizerFinder(trace, flow).run(); }

double ParameterCount::update_bytes() const {
  const double copy = master ? 4 : bytes_per_parameter;
  return 2 * moment_bytes + 3 * copy;
}

ParameterCount count_parameters(const Trace& trace, const Dataflow& flow, const OptimizerStep& step) {
  constexpr double kMasterBytes = 4, kLeastWithMaster = 10, kMostOfAdam = 16.5;
  const double states = total_bytes(trace, step.states), parameters = total_bytes(trace, step.parameters);
  ParameterCount count;
  count.bytes_per_parameter = element_size(trace, flow, step.parameters);
  if (count.bytes_per_parameter == 0) count.bytes_per_parameter = states > 3.5 * parameters ? 2 : 4;
  const bool half = count.bytes_per_parameter == 2;
  const double all = parameters / count.bytes_per_parameter;
  count.share = updated_share(trace, step);
  count.parameters = all * count.share;
  const bool by_states = count.share == 0 || states > kMostOfAdam * count.parameters;
  if (by_states) count.parameters = states / (half ? 12 : 8);
  if (count.share == 0) count.share = all > 0 ? std::min(1.0, count.parameters / all) : 1;
  const double bytes = count.parameters > 0 ? states / count.parameters : 0;
  count.master = half && bytes > kLeastWithMaster;
  count.moment_bytes = bytes - (count.master ? kMasterBytes : 0);
  // Step counters and what the allocator rounds up are not the moments'.
  for (const double nominal : {4.0, 8.0})
    if (std::abs(count.moment_bytes - nominal) < 0.1 * nominal) count.moment_bytes = nominal;
  return count;
}

}  // namespace memwall
