#include "policies/planners/swap_schedule.h"

#include <algorithm>
#include <tuple>

#include "policies/trace/rerun_rules.h"

namespace memwall {

SwapSchedule::SwapSchedule(const StepProfile& profile, Bytes budget)
    : profile_(profile),
      budget_(budget),
      device_(profile.machine().tier("hbm")),
      host_(profile.machine().tier("host")),
      ledger_(profile),
      memory_(profile) {}

Duration SwapSchedule::free_time(const Gap& gap) const {
  return gap.length() - ledger_.alone(device_, host_, bytes(gap)) - ledger_.alone(host_, device_, bytes(gap));
}

std::optional<Swap> SwapSchedule::place(const Gap& gap) const {
  if (!ledger_.has_room(host_, bytes(gap), gap.begin, gap.end)) return std::nullopt;
  const auto out = ledger_.earliest(device_, host_, bytes(gap), gap.begin);
  auto back = ledger_.latest(host_, device_, bytes(gap), gap.end);
  if (out && (!back || back->begin < out->end)) back = ledger_.earliest(host_, device_, bytes(gap), out->end);
  if (!out || !back) return without_room(gap);
  Swap swap{gap, *out, *back, kNoOp, kNoOp, std::max(Duration{}, back->end - gap.end)};
  swap.dropped = drop_point(gap, out->end, gap.before);
  swap.fetched = std::clamp(profile_.op_running_at(back->begin), swap.dropped, gap.before);
  return is_away_when_over(swap) ? swap : without_room(gap);
}

// Before the first op that begins once a copy has left, and before the allocs that it makes.
OpId SwapSchedule::drop_point(const Gap& gap, Time left, OpId latest) const {
  const OpId op = std::clamp(profile_.op_at(left), gap.after + 1, latest);
  return std::max(gap.after + 1, insertion_point(profile_.trace(), op));
}

// The device waits for both copies.
Swap SwapSchedule::without_room(const Gap& gap) const {
  const Duration out = ledger_.alone(device_, host_, bytes(gap)), back = ledger_.alone(host_, device_, bytes(gap));
  return {gap, {gap.begin, gap.begin + out}, {gap.end - back, gap.end}, gap.after + 1, gap.before, out + back};
}

void SwapSchedule::commit(const Swap& swap) {
  ledger_.reserve(device_, host_, bytes(swap.gap), swap.out);
  ledger_.reserve(host_, device_, bytes(swap.gap), swap.back);
  ledger_.hold(host_, bytes(swap.gap), swap.gap.begin, swap.gap.end);
  take_away(swap);
  swaps_.push_back(swap);
}

void SwapSchedule::queue_copies() {
  keep_to_budget();
  std::vector<Swap*> order;
  for (Swap& swap : swaps_) order.push_back(&swap);
  std::stable_sort(order.begin(), order.end(),
                   [](const Swap* a, const Swap* b) { return a->gap.begin < b->gap.begin; });
  Time left{};
  for (Swap* swap : order) {
    left = std::max(left, swap->gap.begin) + ledger_.alone(device_, host_, bytes(swap->gap));
    shift(*swap, drop_point(swap->gap, left, swap->fetched), swap->fetched);
  }
  std::stable_sort(order.begin(), order.end(), [](const Swap* a, const Swap* b) { return a->gap.end > b->gap.end; });
  Time next = kNever;
  for (Swap* swap : order) {
    next = std::min(next, swap->gap.end) - ledger_.alone(host_, device_, bytes(swap->gap));
    shift(*swap, swap->dropped, std::clamp(profile_.op_running_at(next), swap->dropped, swap->gap.before));
  }
}

// Of what could be away at the peak the one that is nearest to it goes there, until nothing is left.
void SwapSchedule::keep_to_budget() {
  while (memory_.peak() > budget_ && memory_.peak_op() != kNoOp) {
    const OpId peak = memory_.peak_op();
    Swap* nearest = nullptr;
    Duration least = kNever;
    for (Swap& swap : swaps_) {
      const bool early = peak > swap.gap.after && peak < swap.dropped;
      const bool late = peak + 2 > swap.fetched && peak + 2 <= swap.gap.before;
      if (!early && !late) continue;
      const Duration distance = early ? profile_.start(swap.dropped) - profile_.start(peak)
                                      : profile_.start(peak) - profile_.start(swap.fetched);
      if (distance < least) nearest = &swap, least = distance;
    }
    if (nearest == nullptr) return;
    move(*nearest, std::min(nearest->dropped, peak), std::max(nearest->fetched, peak + 2));
  }
}

void SwapSchedule::move(Swap& swap, OpId dropped, OpId fetched) {
  take_back(swap);
  swap.dropped = dropped;
  swap.fetched = fetched;
  take_away(swap);
}

// Drops and fetches at these ops instead, if the budget has room for it.
bool SwapSchedule::shift(Swap& swap, OpId dropped, OpId fetched) {
  const OpId was_dropped = swap.dropped, was_fetched = swap.fetched;
  if (dropped == was_dropped && fetched == was_fetched) return false;
  move(swap, dropped, fetched);
  // Where it is there and was not before.
  if (!is_over(was_dropped, dropped) && !is_over(fetched - 1, was_fetched - 1)) return true;
  move(swap, was_dropped, was_fetched);
  return false;
}

bool SwapSchedule::fetch_earlier(std::size_t index, Duration by) {
  Swap& swap = swaps_[index];
  const OpId earlier = profile_.op_running_at(profile_.start(swap.fetched) - by);
  return shift(swap, swap.dropped, std::clamp(earlier, swap.dropped, swap.fetched));
}

// At one op what is needed first comes first.
std::vector<std::size_t> SwapSchedule::fetch_order() const {
  std::vector<std::size_t> order(swaps_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(swaps_[a].fetched, swaps_[a].gap.before, a) <
           std::tuple(swaps_[b].fetched, swaps_[b].gap.before, b);
  });
  return order;
}

std::vector<StorageDecision> SwapSchedule::decisions() const {
  std::vector<StorageDecision> all(swaps_.size());
  std::uint32_t order = 0;
  for (const std::size_t i : fetch_order()) {
    const Swap& swap = swaps_[i];
    StorageDecision& d = all[i];
    d.storage = swap.gap.storage;
    d.copies.push_back({{swap.gap.after, true, 0}, 0});
    d.drops.push_back({{swap.dropped, false, 0}});
    d.fetches.push_back({{swap.fetched, false, ++order}, 0});
  }
  return all;
}

}  // namespace memwall
