#include "policies/cycle/move_schedule.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "policies/cycle/move_choice.h"
#include "policies/cycle/move_passes.h"

namespace memwall {
namespace {

constexpr Duration kLeastWait = microseconds(1);
// From this growth of waits on, they are those of a flow; where so many times its bytes do not help, they are put where
// most is over the budget, and nowhere else.
constexpr double kStuck = 4, kSoonStuck = 2, kMostFlowing = 6;
constexpr Bytes kFarTooMuch = 4;  // more than this part of the excess is left without waits

std::vector<Duration> times_of(const StepCycle& cycle) {
  std::vector<Duration> times;
  for (const CycleSlot& slot : cycle.slots()) times.push_back(slot.time);
  return times;
}

// Bytes over the budget, and the slot where they are most.
std::pair<Bytes, std::int64_t> worst_excess(const ExcessTree& tree, std::int64_t turn, Bytes budget) {
  std::pair<Bytes, std::int64_t> worst{0, -1};
  for (std::int64_t slot = tree.next_over(0); slot < turn; slot = tree.next_over(slot + 1)) {
    worst = std::max(worst, {tree.at(slot) - budget, slot});
    if (slot + 1 >= turn) break;
  }
  return worst;
}

// The device has to wait where more is left than the budget: before `worst`, as much as copies out need longer by each
// slot up to there; or behind it, as copies back do.
void stretch(const ScheduleTable& table, std::int64_t worst, bool out, double rate, std::vector<Duration>& waits) {
  Duration waited{};
  for (std::int64_t i = table.turn - 1; i >= 0; --i) {
    const std::int64_t slot = out ? worst - i : worst + i;
    if (!table.tree.is_over(static_cast<std::int64_t>(table.place(slot)))) continue;
    const Bytes over = table.tree.at(static_cast<std::int64_t>(table.place(slot))) - table.budget;
    const Duration needed = from_seconds(static_cast<double>(over) / rate) + kLeastWait;
    if (needed <= waited) continue;
    waits[table.place(out ? slot : slot + 1)] += needed - waited;
    waited = needed;
  }
}

// Waits for which bytes over the budget, as they come and go around the highest of them, could flow out before it and
// back behind it, with `scale` times the bytes: where waits for the worst slot alone only make its neighbours worst.
std::vector<Duration> flowing_waits(const ScheduleTable& table, double scale) {
  const auto& live = table.cycle.live();
  const std::int64_t peak = std::max_element(live.begin(), live.end()) - live.begin();
  // Where all slots are over it, what is over in all of them leaves and comes back at other times.
  const Bytes level = std::max(table.budget, *std::min_element(live.begin(), live.end()));
  std::vector<Duration> waits(live.size());
  for (const bool out : {true, false}) {
    const double rate = out ? table.links.total_out : table.links.total_in;
    std::int64_t first = peak;  // of those over the budget up to the peak, or the last behind it
    const std::int64_t step = out ? 1 : -1;
    while (std::abs(first - peak) < table.turn - 1 && live[table.place(first - step)] > level) first -= step;
    Duration waited{}, worked{};
    for (std::int64_t slot = first; slot != peak + step; slot += step) {
      const auto over = static_cast<double>(live[table.place(slot)] - level);
      const Duration missing = from_seconds(scale * over / rate) - worked - waited;
      if (missing > Duration{}) waits[table.place(out ? slot : slot + 1)] += missing, waited += missing;
      worked += table.times[table.place(slot)];
    }
  }
  return waits;
}

// Storages that are worth their copies, where these are enough; else 0: all.
Bytes least_to_move(const StepCycle& cycle, Bytes excess, Bytes finest) {
  const auto& live = cycle.live();
  const std::int64_t peak = std::max_element(live.begin(), live.end()) - live.begin();
  const Bytes least = excess / finest;
  Bytes enough = excess;
  for (const CycleGap& gap : cycle.gaps()) {
    const std::int64_t here = peak < gap.begin ? peak + cycle.size() : peak;
    const Bytes held = cycle.storages()[gap.storage].held;
    if (here < gap.end && held >= least) enough -= held;
    if (enough <= 0) return least;
  }
  return 0;
}

// Later choices may have made earlier ones needless.
void prune(ScheduleTable& table, std::vector<PlannedMove>& moves) {
  std::vector<PlannedMove> needed;
  std::vector<std::uint32_t> relying(table.cycle.versions(), 0);
  for (const PlannedMove& move : moves) ++relying[table.gap(move.gap).version];
  for (auto move = moves.rbegin(); move != moves.rend(); ++move) {
    const Bytes held = table.storage(move->gap).held;
    const bool alone = move->copy == PlannedMove::kNoCopy || relying[table.gap(move->gap).version] == 1;
    if (alone && table.tree.highest(move->drop, move->fetch) + held <= table.budget) {
      table.tree.add(move->drop, move->fetch, held);
      --relying[table.gap(move->gap).version];
    } else {
      needed.push_back(*move);
    }
  }
  moves.assign(needed.rbegin(), needed.rend());
}

// By MoveSettings::farthest.
MoveSchedule farthest_moves(const StepCycle& cycle, const CycleLinks& links, Bytes budget,
                            const MoveSettings& settings) {
  MoveSchedule result;
  const Bytes least = least_to_move(cycle, cycle.peak() - budget, settings.finest);
  const std::vector<Duration> times = times_of(cycle), waits(times.size());
  const CopyTimes copies(cycle, links);
  for (const Bytes smallest : {least, Bytes{0}}) {
    ScheduleTable table(cycle, links, copies, budget, settings, times, waits);
    result.plan = {};
    MoveChoice choice(table, result.plan.moves);
    choice.run_farthest(smallest);
    result.work += choice.looked_at() + times.size();
    const std::int64_t over = worst_excess(table.tree, table.turn, budget).second;
    result.fits = over < 0;
    if (result.fits) {
      prune(table, result.plan.moves);
      order_departures(table, result.plan);
      place_returns(table, choice.latest(), result.plan);
      return result;
    }
    result.over = static_cast<std::uint32_t>(over);
    if (least == 0) break;
  }
  return result;
}

}  // namespace

MoveSchedule schedule_moves(const StepCycle& cycle, const CycleLinks& links, Bytes budget,
                            const MoveSettings& settings) {
  if (settings.farthest) return farthest_moves(cycle, links, budget, settings);
  MoveSchedule result;
  const Bytes excess = cycle.peak() - budget, least = least_to_move(cycle, excess, settings.finest);
  const std::vector<Duration> times = times_of(cycle);
  const CopyTimes copies(cycle, links);
  std::vector<Duration> waits = settings.waits;
  waits.resize(times.size());
  // Longer waits have not helped: short gaps are needed, too.
  bool stuck = false;
  // Nor has as much as the bytes over the budget take: a whole storage is longer on its way, and it may not have been
  // the wait before the first slot that is over.
  double growth = 1, flowing = 1;
  bool flows = false;
  Bytes last = std::numeric_limits<Bytes>::max() / 16;
  std::vector<std::int64_t> latest;
  for (int round = 0; round < settings.rounds; ++round) {
    ScheduleTable table(cycle, links, copies, budget, settings, times, waits);
    if (!table.tree.is_over()) return result;
    if (stuck) table.margin = 0;
    result.plan = {};
    MoveChoice choice(table, result.plan.moves);
    choice.run(round < settings.rounds / 2 ? least : 0);
    result.work += choice.looked_at() + times.size();
    const auto [over, slot] = worst_excess(table.tree, table.turn, budget);
    result.fits = slot < 0;
    if (!result.fits) {
      result.over = static_cast<std::uint32_t>(slot);
      growth = over > last * 9 / 10 ? 2 * growth : 1;
      stuck = stuck || over > last * 9 / 10;
      last = over;
      const bool late = choice.leaves_too_late(slot);
      // Far too little time: waits for single slots would take many rounds to become those of a flow.
      flows = flows || (round == 0 && settings.waits.empty() && over > excess / kFarTooMuch);
      stuck = stuck || flows;
      const bool starts = flows && flowing == 1;
      if ((starts || growth > (flows ? kSoonStuck : kStuck)) && flowing <= kMostFlowing) {
        waits = flowing_waits(table, flowing);
        flowing *= 1.5;
      } else if (growth > kStuck)
        waits[table.place(late ? slot : slot + 1)] +=
            from_seconds(growth * static_cast<double>(over) / choice.rate(slot, late)) + kLeastWait;
      else
        stretch(table, slot, late, choice.rate(slot, late) / growth, waits);
      if (std::accumulate(waits.begin(), waits.end(), Duration{}) > settings.longest_wait) return result;
      continue;
    }
    prune(table, result.plan.moves);
    order_departures(table, result.plan);
    latest = choice.latest();
    break;
  }
  if (!result.fits) return result;
  ScheduleTable table(cycle, links, copies, budget, settings, times, waits);
  for (const PlannedMove& move : result.plan.moves)
    table.tree.add(move.drop, move.fetch, -table.storage(move.gap).held);
  place_returns(table, latest, result.plan);
  return result;
}

}  // namespace memwall
