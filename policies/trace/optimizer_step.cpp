#include "policies/trace/optimizer_step.h"

#include <algorithm>
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

double total_bytes(const Trace& t, const std::vector<StorageId>& storages) {
  double sum = 0;
  for (const StorageId id : storages) sum += static_cast<double>(t.storages[id].bytes);
  return sum;
}

}  // namespace

Optimizer find_optimizer(const Trace& trace, const Dataflow& flow) { return OptimizerFinder(trace, flow).run(); }

ParameterCount count_parameters(const Trace& trace, const Dataflow& flow, const OptimizerStep& step) {
  const double states = total_bytes(trace, step.states), parameters = total_bytes(trace, step.parameters);
  ParameterCount count;
  count.bytes_per_parameter = element_size(trace, flow, step.parameters);
  if (count.bytes_per_parameter == 0) count.bytes_per_parameter = states > 3.5 * parameters ? 2 : 4;
  const double ratio = parameters > 0 ? states / parameters : 0;
  const bool without_master = count.bytes_per_parameter == 4 || (ratio > 3.8 && ratio < 4.2);
  count.parameters = states / (without_master ? 8 : 12);
  const double updated = count.parameters * count.bytes_per_parameter;
  // Over two or more ranks a rank updates at most a half; anything nearer to 1 is padding.
  if (updated < 0.75 * parameters) count.share = updated / parameters;
  return count;
}

}  // namespace memwall
