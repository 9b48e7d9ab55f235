#include "policies/cycle/move_repair.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace memwall {
namespace {

// Of four repairs so many leave most of a plan's moves where they are, and exchange a few: these take less time.
constexpr std::uint64_t kExchanges = 3;
constexpr double kWaitsOfExchange = 0.97;
// How far back in a queue the cause of a wait is sought.
constexpr std::size_t kReach = 256, kNearest = 32;

std::int64_t modulo(std::int64_t a, std::int64_t turn) { return ((a % turn) + turn) % turn; }

}  // namespace

std::vector<Duration> shortened(std::vector<Duration> waits, double share) {
  for (Duration& wait : waits) wait = from_seconds(share * to_seconds(wait));
  return waits;
}

MoveRepair::MoveRepair(const StepCycle& cycle, std::vector<double> base_weights)
    : cycle_(cycle), base_weights_(std::move(base_weights)) {}

MoveSettings MoveRepair::next(const TriedMoves& best, const std::vector<Duration>& last_waits) {
  MoveSettings next = best.settings;
  next.farthest = false;
  next.first.clear();
  if (next.weights.empty()) next.weights.assign(cycle_.gaps().size(), 1);
  const std::vector<Duration>& waits = random_() % 2 == 0 ? last_waits : best.replayed.waits;
  if (random_() % 4 < kExchanges) {
    next.waits = shortened(waits, kWaitsOfExchange);
    return exchanged(best, std::move(next));
  }
  constexpr double kShares[] = {0.95, 0.9, 0.85, 0.97, 0.7};
  next.waits = shortened(waits, kShares[random_() % std::size(kShares)]);
  return chosen_anew(best, std::move(next));
}

// Settings drawn anew, or the best so far but for weights.
MoveSettings MoveRepair::chosen_anew(const TriedMoves& best, MoveSettings next) {
  constexpr double kNearness[] = {0.9, 0.95, 0.8};
  next.nearness = kNearness[random_() % std::size(kNearness)];
  switch (random_() % 4) {
    case 0:
    case 1: {
      constexpr double kMargins[] = {1, 4, 2, 8};
      next.margin = kMargins[random_() % std::size(kMargins)];
      next.by_area = random_() % 2 == 0;
      next.look_ahead = random_() % 2 == 0 ? 1 : 8;
      if (random_() % 2 == 0) next.weights = base_weights_;
      if (random_() % 2 == 0) next.weights.assign(cycle_.gaps().size(), 1);
      break;
    }
    case 2: {
      const double strength = static_cast<double>(1 + random_() % 4) / 8;
      for (double& weight : next.weights) weight *= 1 + strength * (static_cast<double>(random_() % 1024) / 512 - 1);
      break;
    }
    default:
      reweigh(best, next);
  }
  return next;
}

// Some moves give way, rather those that are away at a slot that waits and were written last; some of the gaps that
// stay there are taken instead, rather large ones. All else is taken first.
MoveSettings MoveRepair::exchanged(const TriedMoves& best, MoveSettings next) {
  std::size_t slot = drawn_slot(best);
  if (slot == cycle_.size()) slot = random_() % cycle_.size();
  const std::vector<PlannedMove>& moves = best.plan.moves;
  const std::vector<std::size_t> inside = moves_over(best, slot);
  const std::vector<std::uint32_t> others = unmoved_over(best, slot);
  std::vector<bool> gives_way(moves.size(), false);
  const std::size_t many = 1 + random_() % 3;
  for (std::size_t i = 0; i < many; ++i) {
    if (!inside.empty()) {
      const std::size_t m = random_() % 2 == 0 ? inside[skewed(inside.size())] : random_() % moves.size();
      gives_way[m] = true;
      if (random_() % 2 == 0) next.weights[moves[m].gap] = 0;
    }
    if (others.empty() || random_() % 4 == 0) continue;
    const std::uint32_t g = others[skewed(others.size())];
    if (next.weights[g] <= 0) next.weights[g] = 1;
    next.first.push_back(g);
  }
  for (std::size_t m = 0; m < moves.size(); ++m)
    if (!gives_way[m]) next.first.push_back(moves[m].gap);
  return next;
}

bool MoveRepair::covers(std::int64_t begin, std::int64_t end, std::size_t slot) const {
  const auto at = static_cast<std::int64_t>(slot), later = at + cycle_.size();
  return (begin <= at && at < end) || (begin <= later && later < end);
}

// Indices of moves whose gaps the slot is in, what was written last first.
std::vector<std::size_t> MoveRepair::moves_over(const TriedMoves& best, std::size_t slot) const {
  std::vector<std::pair<std::int64_t, std::size_t>> inside;
  for (std::size_t m = 0; m < best.plan.moves.size(); ++m) {
    const CycleGap& gap = cycle_.gaps()[best.plan.moves[m].gap];
    if (covers(gap.begin, gap.end, slot))
      inside.emplace_back(modulo(static_cast<std::int64_t>(slot) - gap.written, cycle_.size()), m);
  }
  std::sort(inside.begin(), inside.end());
  std::vector<std::size_t> moves;
  for (const auto& [age, m] : inside) moves.push_back(m);
  return moves;
}

// Gaps that the slot is in and the plan does not move, the largest first.
std::vector<std::uint32_t> MoveRepair::unmoved_over(const TriedMoves& best, std::size_t slot) const {
  std::vector<bool> moved(cycle_.gaps().size(), false);
  for (const PlannedMove& move : best.plan.moves) moved[move.gap] = true;
  std::vector<std::uint32_t> others;
  for (std::uint32_t g = 0; g < moved.size(); ++g)
    if (!moved[g] && covers(cycle_.gaps()[g].begin, cycle_.gaps()[g].end, slot)) others.push_back(g);
  const auto held = [&](std::uint32_t g) { return cycle_.storages()[cycle_.gaps()[g].storage].held; };
  std::stable_sort(others.begin(), others.end(), [&](auto a, auto b) { return held(a) > held(b); });
  return others;
}

std::size_t MoveRepair::skewed(std::size_t size) {
  const double drawn = static_cast<double>(random_() % 1024) / 1024;
  return static_cast<std::size_t>(drawn * drawn * static_cast<double>(size));
}

// Gaps that were copied right before a wait, which is drawn by its length, are banned or made less of.
void MoveRepair::reweigh(const TriedMoves& best, MoveSettings& next) {
  const std::size_t slot = drawn_slot(best);
  if (slot == cycle_.size()) return;
  const std::vector<std::uint32_t> before = queued_before(best, slot);
  if (before.empty()) return;
  const std::size_t many = 1 + random_() % 3;
  for (std::size_t i = 0; i < many; ++i) {
    double& weight = next.weights[best.plan.moves[before[random_() % before.size()]].gap];
    weight *= random_() % 2 == 0 ? 0 : 0.3;
  }
}

// By the length of its wait; the cycle's size where nothing waits.
std::size_t MoveRepair::drawn_slot(const TriedMoves& best) {
  const std::vector<Duration>& waits = best.replayed.waits;
  std::int64_t sum = 0;
  for (const Duration wait : waits) sum += wait.count();
  if (sum == 0) return cycle_.size();
  auto left = static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(sum));
  std::size_t slot = 0;
  while (left >= waits[slot].count()) left -= waits[slot++].count();
  return slot;
}

// The moves whose copies stood in the same queue before the one that was waited for, the nearest first: rather those
// that are not away at the slot.
std::vector<std::uint32_t> MoveRepair::queued_before(const TriedMoves& best, std::size_t slot) {
  const std::uint32_t waited_for = best.replayed.for_move[slot];
  if (waited_for == ReplayedCycle::kNone) return {};
  const std::int64_t turn = cycle_.size();
  const std::vector<PlannedMove>& moves = best.plan.moves;
  const PlannedMove& last = moves[waited_for];
  const bool out = modulo(last.drop, turn) == static_cast<std::int64_t>(slot);
  const std::int64_t at = modulo(out ? last.copy : last.fetch, turn);
  if (out && last.copy == PlannedMove::kNoCopy) return {};
  std::vector<std::pair<std::int64_t, std::uint32_t>> queue;
  for (std::uint32_t m = 0; m < moves.size(); ++m) {
    if (out && moves[m].copy == PlannedMove::kNoCopy) continue;
    queue.emplace_back(modulo(at - modulo(out ? moves[m].copy : moves[m].fetch, turn), turn), m);
  }
  const std::size_t many = std::min(random_() % 2 == 0 ? kNearest : kReach, queue.size());
  std::partial_sort(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(many), queue.end());
  std::vector<std::uint32_t> nearest, useless;
  for (std::size_t i = 0; i < many; ++i) {
    const std::uint32_t m = queue[i].second;
    nearest.push_back(m);
    if (!covers(moves[m].drop, moves[m].fetch, slot)) useless.push_back(m);
  }
  return useless.empty() || random_() % 4 == 0 ? nearest : useless;
}

}  // namespace memwall
