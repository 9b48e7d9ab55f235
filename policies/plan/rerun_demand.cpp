#include "policies/plan/rerun_demand.h"

#include <algorithm>

#include "policies/plan/forward_names.h"
#include "policies/plan/plan_timeline.h"
#include "policies/trace/rerun_rules.h"

namespace memwall {

RerunDemand::RerunDemand(const Trace& trace, const Dataflow& flow, const SavedStorages& saved,
                         const RerunInputs& inputs)
    : t_(trace), flow_(flow), saved_(saved), inputs_(inputs) {
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    if (!runs_on_device(op.kind)) continue;
    if (op.phase == Phase::backward && op.source != kNoOp) node_of_.try_emplace(op.source, id);
    if (op.phase != Phase::forward) continue;
    for (const Use& use : trace.uses_of(op))
      if (use.saved) savers_[use.storage].push_back(id);
  }
}

// Of what it brings back. The op is kNoOp where nothing asks for that.
PlanPoint RerunDemand::first_to_ask(const PlannedRerun& rerun, const MemoryPlan& plan) const {
  PlanPoint first;
  const auto ask = [&](const PlanPoint& at) {
    if (first.op == kNoOp || at < first) first = at;
  };
  for (const StorageDecision& d : plan.storages) {
    if (moves(d) || d.drops.empty() || !inputs_.uses(rerun, d.storage, Access::write)) continue;
    for (const PlannedRerun& other : plan.reruns)
      if (&rerun < &other && inputs_.uses(other, d.storage, Access::read) &&
          !inputs_.uses(other, d.storage, Access::write))
        ask(other.at);
    for (const Touch& touch : flow_.touches(d.storage))
      if (is_behind(touch.op, rerun.at)) {
        const OpId node = saved_.first_of_node(touch.op);
        ask({insertion_point(t_, node), false, rerun.at.order});
        break;
      }
    const auto savers = savers_.find(d.storage);  // a node asks for all that was saved for it, also for shapes alone
    if (savers == savers_.end()) continue;
    for (const OpId saver : savers->second)
      if (const auto node = node_of_.find(saver); node != node_of_.end() && node->second > rerun.ops.back())
        ask({insertion_point(t_, node->second), false, rerun.at.order});
  }
  return first;
}

bool RerunDemand::hold_inputs(const PlannedRerun& rerun, const PlanPoint& from, MemoryPlan& plan) const {
  bool changed = false;
  for (StorageDecision& d : plan.storages) {
    if (!inputs_.uses(rerun, d.storage, Access::read) || inputs_.uses(rerun, d.storage, Access::write)) continue;
    for (PlannedDrop& drop : d.drops)
      if (!(drop.at < from) && drop.at < rerun.at) {
        drop.at = {rerun.at.op, rerun.at.after, rerun.at.order + 1};
        changed = true;
      }
  }
  return changed;
}

bool RerunDemand::move(PlannedRerun& rerun, MemoryPlan& plan) const {
  OpId next = rerun.at.op + (rerun.at.after ? 1 : 0);
  while (next < t_.ops.size() && !runs_on_device(t_.ops[next].kind)) ++next;
  if (next == t_.ops.size()) return false;
  const PlanPoint from = rerun.at;
  PlanPoint to = first_to_ask(rerun, plan);
  if (to.op == kNoOp) {
    const OpId node = saved_.first_of_node(next);
    to = node == next ? from : PlanPoint{insertion_point(t_, node), false, from.order};
  }
  // Where it stands right before that already it stays.
  const auto launched_between = [&](OpId begin, OpId end) {
    return std::any_of(t_.ops.begin() + begin, t_.ops.begin() + end,
                       [](const Op& op) { return runs_on_device(op.kind); });
  };
  const OpId first = from.op + (from.after ? 1 : 0);
  const bool is_there =
      to.op >= first && !launched_between(first, to.op) &&
      std::ranges::none_of(plan.reruns, [&](const PlannedRerun& other) { return from < other.at && other.at < to; });
  if (is_there || (to.op == from.op && to.after == from.after) || to.op <= rerun.ops.back()) return false;
  rerun.at = to;
  hold_inputs(rerun, from, plan);
  return true;
}

// Does it read what the other one makes, and the plan drops?
bool RerunDemand::starts_from(const PlannedRerun& rerun, const PlannedRerun& other, const MemoryPlan& plan) const {
  return std::ranges::any_of(plan.storages, [&](const StorageDecision& d) {
    return !moves(d) && !d.drops.empty() && inputs_.uses(rerun, d.storage, Access::read) &&
           !inputs_.uses(rerun, d.storage, Access::write) && inputs_.uses(other, d.storage, Access::write);
  });
}

// Of the first that the node behind the re-run asks for, among all that its operator has saved.
std::size_t RerunDemand::place_in_asking(const PlannedRerun& rerun, const MemoryPlan& plan) const {
  constexpr std::size_t kNotAsked = static_cast<std::size_t>(-1);
  OpId node = rerun.at.op + (rerun.at.after ? 1 : 0);
  while (node < t_.ops.size() && !runs_on_device(t_.ops[node].kind)) ++node;
  if (node == t_.ops.size() || t_.ops[node].source == kNoOp) return kNotAsked;
  const auto saved = t_.uses_of(t_.ops[t_.ops[node].source]);
  for (std::size_t i = 0; i < saved.size(); ++i)
    if (saved[i].saved && inputs_.is_decided(saved[i].storage, plan) &&
        inputs_.uses(rerun, saved[i].storage, Access::write))
      return i;
  return kNotAsked;
}

bool RerunDemand::put_in_order_of_asking(MemoryPlan& plan) const {
  bool changed = false;
  const auto stands_before = [](const PlannedRerun& a, const PlannedRerun& b) {
    return a.at.op != b.at.op ? a.at.op < b.at.op : a.at.after < b.at.after;
  };
  std::stable_sort(plan.reruns.begin(), plan.reruns.end(), stands_before);
  auto begin = plan.reruns.begin();
  while (begin != plan.reruns.end()) {
    const auto end = std::find_if(begin, plan.reruns.end(), [&](const PlannedRerun& one) {
      return one.at.op != begin->at.op || one.at.after != begin->at.after;
    });
    std::vector<PlannedRerun> left(begin, end), row;
    std::uint32_t order = begin->at.order;
    for (auto one = begin; one != end; ++one) order = std::min(order, one->at.order);
    std::ranges::stable_sort(left, {}, [&](const PlannedRerun& one) { return place_in_asking(one, plan); });
    while (!left.empty()) {  // the first that waits for none of the others
      auto next = std::ranges::find_if(left, [&](const PlannedRerun& one) {
        return std::ranges::none_of(
            left, [&](const PlannedRerun& other) { return &one != &other && starts_from(one, other, plan); });
      });
      if (next == left.end()) next = left.begin();
      row.push_back(*next);
      row.back().at.order = order + 2 * static_cast<std::uint32_t>(row.size() - 1);  // drops stand between them
      left.erase(next);
    }
    for (const PlannedRerun& one : row) {
      changed = changed || !(*begin == one);
      *begin++ = one;
    }
  }
  return changed;
}

bool RerunDemand::wait_for_each_other(const MemoryPlan& plan, const std::vector<bool>& is_single) const {
  std::vector<bool> is_done(plan.reruns.size());
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (std::size_t i = 0; i < plan.reruns.size(); ++i) {
      bool waits = is_done[i];
      for (std::size_t j = 0; j < plan.reruns.size() && !waits; ++j)
        waits = j != i && is_single[j] && !is_done[j] && starts_from(plan.reruns[i], plan.reruns[j], plan);
      if (waits) continue;
      is_done[i] = goes_on = true;
    }
  }
  return std::ranges::find(is_done, false) != is_done.end();
}

bool RerunDemand::move_unit(PlannedRerun& unit, const std::vector<std::string>& modules) const {
  OpId first = kNoOp;
  for (OpId id = unit.ops.front(); id < unit.at.op && t_.ops[id].phase != Phase::backward; ++id) {
    const bool saves = std::ranges::any_of(t_.uses_of(t_.ops[id]), [](const Use& use) { return use.saved; });
    const bool is_inside = std::ranges::any_of(
        modules, [&](const std::string& path) { return is_within(t_.strings[t_.ops[id].module], path); });
    const auto node = node_of_.find(id);
    if (saves && is_inside && node != node_of_.end()) first = std::min(first, node->second);
  }
  if (first == kNoOp) return false;
  const PlanPoint to{insertion_point(t_, first), false, unit.at.order};
  const OpId from = unit.at.op + (unit.at.after ? 1 : 0);
  const bool is_later = to.op > from && std::any_of(t_.ops.begin() + from, t_.ops.begin() + to.op,
                                                    [](const Op& op) { return runs_on_device(op.kind); });
  if (!is_later) return false;
  unit.at = to;
  return true;
}

bool RerunDemand::hand_over(StorageId storage, const PlanPoint& from, MemoryPlan& plan) const {
  const auto d = std::ranges::find(plan.storages, storage, &StorageDecision::storage);
  const auto until = saved_.handed_until(storage);
  if (d == plan.storages.end() || moves(*d) || !until || d->drops.empty()) return false;
  const PlanPoint end{*until, true};
  if (!(from < end) || from < d->drops.back().at) return false;
  d->drops.push_back({end});
  return true;
}

bool RerunDemand::drop_behind_readers(MemoryPlan& plan, const std::vector<bool>& is_single) const {
  bool changed = false;
  for (StorageDecision& d : plan.storages) {
    if (moves(d)) continue;
    for (std::size_t k = 1; k < d.drops.size(); ++k) {
      const PlannedRerun *maker = nullptr, *reader = nullptr;
      for (std::size_t i = 0; i < plan.reruns.size(); ++i) {
        const PlannedRerun& rerun = plan.reruns[i];
        if (rerun.at.op > d.drops[k].at.op || (!is_single[i] && maker == nullptr)) continue;
        if (inputs_.uses(rerun, d.storage, Access::write))
          maker = &rerun, reader = nullptr;
        else if (maker != nullptr && inputs_.uses(rerun, d.storage, Access::read))
          reader = is_single[i] ? &rerun : nullptr;
      }
      if (maker == nullptr || reader == nullptr || !(d.drops[k - 1].at < maker->at)) continue;
      const PlanPoint behind{reader->at.op, reader->at.after, reader->at.order + 1};
      const bool is_touched = std::ranges::any_of(flow_.touches(d.storage), [&](const Touch& touch) {
        return is_behind(touch.op, maker->at) && !is_behind(touch.op, d.drops[k].at);
      });
      if (is_touched || d.drops[k].at == behind) continue;
      d.drops[k].at = behind;
      changed = true;
    }
  }
  return changed;
}

}  // namespace memwall
