#include "policies/trace/optimizer_step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace memwall {
namespace {

// Ops of an optimizer that share a state, a temporary or a parameter that they write: one update, which cannot be cut.
struct Update {
  std::vector<OpId> ops;
  std::set<StorageId> gradients, parameters;
};

// Cuts one run of the phase optimizer into steps. Where the optimizer runs in backward, the phase may cover what
// backward still does between two updates; an update then cannot stand where an earlier one does.
class StepCutter {
 public:
  StepCutter(const Trace& trace, const Dataflow& flow, const std::vector<bool>& member,
             const std::set<StorageId>& temporaries)
      : t_(trace), flow_(flow), member_(member), temporaries_(temporaries) {}

  std::vector<std::vector<OpId>> cut(const std::vector<OpId>& ops) const {
    std::vector<std::vector<OpId>> steps;
    for (const Update& update : updates(ops)) {
      if (steps.empty() || touched_between(update, steps.back().front())) steps.emplace_back();
      steps.back().insert(steps.back().end(), update.ops.begin(), update.ops.end());
    }
    for (std::vector<OpId>& step : steps) std::sort(step.begin(), step.end());
    return steps;
  }

 private:
  // In the order of their first ops.
  std::vector<Update> updates(const std::vector<OpId>& ops) const {
    std::vector<std::size_t> parent(ops.size());
    std::iota(parent.begin(), parent.end(), 0);
    const auto root = [&](std::size_t i) {
      while (parent[i] != i) i = parent[i] = parent[parent[i]];
      return i;
    };
    std::map<StorageId, std::size_t> first_user;
    for (std::size_t i = 0; i < ops.size(); ++i)
      for (const Use& use : t_.uses_of(t_.ops[ops[i]])) {
        if (!ties(use)) continue;
        const std::size_t a = root(first_user.try_emplace(use.storage, i).first->second), b = root(i);
        parent[std::max(a, b)] = std::min(a, b);
      }
    std::map<std::size_t, Update> found;
    for (std::size_t i = 0; i < ops.size(); ++i) add(ops[i], found[root(i)]);
    std::vector<Update> all;
    for (auto& [first, update] : found) all.push_back(std::move(update));
    return all;
  }

  bool ties(const Use& use) const {
    const StorageKind kind = t_.storages[use.storage].kind;
    return kind == StorageKind::optimizer_state || kind == StorageKind::parameter || temporaries_.contains(use.storage);
  }

  void add(OpId id, Update& update) const {
    update.ops.push_back(id);
    for (const Use& use : t_.uses_of(t_.ops[id])) {
      const StorageKind kind = t_.storages[use.storage].kind;
      if (kind == StorageKind::parameter) update.parameters.insert(use.storage);
      if (!ties(use) && kind != StorageKind::input && use.access == Access::read) update.gradients.insert(use.storage);
    }
  }

  // From `begin` to the update, does anything but an optimizer make one of its gradients or use its parameters?
  bool touched_between(const Update& update, OpId begin) const {
    const auto touched = [&](StorageId id, bool reads_too) {
      const auto touches = flow_.touches(id);
      return std::any_of(touches.begin(), touches.end(), [&](const Touch& touch) {
        return touch.op > begin && touch.op < update.ops.back() && !member_[touch.op] &&
               runs_on_device(t_.ops[touch.op].kind) && (touch.writes || reads_too);
      });
    };
    return std::any_of(update.gradients.begin(), update.gradients.end(), [&](auto id) { return touched(id, false); }) ||
           std::any_of(update.parameters.begin(), update.parameters.end(), [&](auto id) { return touched(id, true); });
  }

  const Trace& t_;
  const Dataflow& flow_;
  const std::vector<bool>& member_;
  const std::set<StorageId>& temporaries_;
};

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
    std::map<std::uint32_t, std::vector<OpId>> by_run;
    for (OpId id = 0; id < t_.ops.size(); ++id)
      if (member_[id]) by_run[flow_.phases().of(id)].push_back(id);
    const StepCutter cutter(t_, flow_, member_, temporaries_);
    for (const auto& [run, ops] : by_run)
      for (std::vector<OpId>& of_step : cutter.cut(ops))
        if (OptimizerStep step = step_of(std::move(of_step)); !step.states.empty())
          result.steps.push_back(std::move(step));
  }

  OptimizerStep step_of(std::vector<OpId> ops) const {
    std::set<StorageId> states, parameters, gradients;
    for (const OpId id : ops)
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
    return {.ops = std::move(ops),
            .states = {states.begin(), states.end()},
            .parameters = {parameters.begin(), parameters.end()},
            .gradients = {gradients.begin(), gradients.end()}};
  }

  const Trace& t_;
  const Dataflow& flow_;
  std::vector<bool> member_;
  std::vector<OpId> pending_;
  std::set<StorageId> temporaries_;
};

// The parameters, and what copies and gathers make of them: where the ranks shard them, kernels read that.
std::set<StorageId> with_copies(const Trace& t, const Dataflow& flow, const std::vector<StorageId>& parameters) {
  std::set<StorageId> all(parameters.begin(), parameters.end());
  std::vector<StorageId> pending(parameters);
  while (!pending.empty()) {
    const StorageId id = pending.back();
    pending.pop_back();
    for (const Touch& touch : flow.touches(id)) {
      const Op& op = t.ops[touch.op];
      if (!touch.reads || (op.kind != OpKind::copy && op.collective != CollectiveKind::all_gather)) continue;
      for (const Use& use : t.uses_of(op))
        if (use.access == Access::write && all.insert(use.storage).second) pending.push_back(use.storage);
    }
  }
  return all;
}

// 2 or 4 by the data type of the kernels that read the parameters in forward; 0 if none says.
int element_size(const Trace& t, const Dataflow& flow, const std::vector<StorageId>& parameters) {
  int half = 0, full = 0;
  for (const StorageId id : with_copies(t, flow, parameters))
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

}  // namespace

double total_bytes(const Trace& t, const std::vector<StorageId>& storages) {
  double sum = 0;
  for (const StorageId id : storages) sum += static_cast<double>(t.storages[id].bytes);
  return sum;
}

Optimizer find_optimizer(const Trace& trace, const Dataflow& flow) { return OptimizerFinder(trace, flow).run(); }

OptimizerStep all_together(const std::vector<OptimizerStep>& steps) {
  std::set<StorageId> states, parameters, gradients;
  for (const OptimizerStep& step : steps) {
    states.insert(step.states.begin(), step.states.end());
    parameters.insert(step.parameters.begin(), step.parameters.end());
    gradients.insert(step.gradients.begin(), step.gradients.end());
  }
  return {.ops = steps.front().ops,
          .states = {states.begin(), states.end()},
          .parameters = {parameters.begin(), parameters.end()},
          .gradients = {gradients.begin(), gradients.end()}};
}

StorageId late_gradient(const Trace& trace, const Dataflow& flow, const OptimizerStep& step) {
  const OpId begin = step.ops.front();
  for (const StorageId id : step.gradients) {
    const bool made_late = std::ranges::any_of(flow.touches(id), [&](const Touch& touch) {
      return touch.op > begin && touch.op < step.ops.back() && touch.writes &&
             runs_on_device(trace.ops[touch.op].kind) && !std::ranges::binary_search(step.ops, touch.op);
    });
    if (made_late || (flow.alloc(id) != kNoOp && flow.alloc(id) > begin)) return id;
  }
  return kNoStorage;
}

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
