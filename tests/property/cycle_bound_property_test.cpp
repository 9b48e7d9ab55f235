// Does the bound of policies/cycle hold against any plan? Plans found and random ones are carried out by a checker
// written apart (tests/support/turn_replay.h), which also says whether they are sound and how much memory they take.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "policies/cycle/cycle_replay.h"
#include "policies/cycle/move_search.h"
#include "policies/cycle/whole_moves.h"
#include "tests/support/random_cycle.h"
#include "tests/support/turn_of_plan.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Both count copies in full picoseconds, the planner's replay up to half a byte.
constexpr double kReplayTolerance = 1e-5;
constexpr double kRounding = 1e-9;

Bytes highest_of(const std::vector<Bytes>& live) { return *std::max_element(live.begin(), live.end()); }

// What ends with a turn comes back for its very end: the replay lets the next turn's copies begin before that, the
// checker does not.
bool comes_back_at_the_end(const StepCycle& cycle, const MovePlan& plan) {
  return std::any_of(plan.moves.begin(), plan.moves.end(), [&](const PlannedMove& move) {
    const CycleGap& gap = cycle.gaps()[move.gap];
    return gap.end == static_cast<std::int32_t>(cycle.size()) && gap.returns && !cycle.storages()[gap.storage].across;
  });
}

struct BoundCounts {
  int plans = 0, waited = 0, bound_binds = 0, close = 0;
  int whole = 0, whole_close = 0;  // the bound of whole storages says more
};

// A plan keeps to the budget; the checker finds no fault, agrees on time and memory; the bound is below.
void expect_above_bound(const StepCycle& cycle, const CycleLinks& links, const MovePlan& plan, Bytes budget,
                        BoundCounts& counts) {
  ASSERT_TRUE(is_sound(cycle, plan));
  const ReplayedTurns checked = replay_turns(turn_of(cycle, plan), links);
  EXPECT_EQ(checked.faults, std::vector<std::string>{});
  EXPECT_LE(checked.highest, budget);
  EXPECT_EQ(checked.highest, std::max<Bytes>(0, highest_of(live_under(cycle, plan))));
  if (!comes_back_at_the_end(cycle, plan)) {
    const double replayed = to_seconds(replay_cycle(cycle, links, plan).turn);
    EXPECT_NEAR(replayed, checked.seconds, kReplayTolerance * checked.seconds);
  }
  const MovesBound bound = moves_bound(cycle, links, budget);
  EXPECT_TRUE(bound.feasible);
  EXPECT_GE(checked.seconds, bound.seconds * (1 - kRounding));
  const double whole = whole_moves_bound_seconds(cycle, links, budget);
  EXPECT_GE(checked.seconds, whole * (1 - kRounding));
  ++counts.plans;
  counts.whole += whole > bound.seconds * 1.001 ? 1 : 0;
  counts.whole_close += whole > bound.seconds * 1.001 && checked.seconds < whole * 1.05 ? 1 : 0;
  counts.waited += checked.seconds > bound.ideal_seconds * 1.001 ? 1 : 0;
  counts.bound_binds += bound.seconds > bound.ideal_seconds * 1.001 ? 1 : 0;
  counts.close += bound.seconds > bound.ideal_seconds * 1.001 && checked.seconds < bound.seconds * 1.05 ? 1 : 0;
}

// Its own highest is the least budget that a plan keeps to, and gives the sharpest bound.
TEST(CycleBoundProperty, HoldsForRandomSoundPlans) {
  BoundCounts counts;
  for (std::uint64_t seed = 0; seed < 40'000 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomNumbers r(seed);
    const StepCycle cycle(seed % 4 == 0 ? random_cycle_program(r) : random_cycle_program(r, 8, 5));
    const CycleLinks links = random_links(r);
    const MovePlan plan = random_sound_plan(r, cycle, links.paths.size());
    expect_above_bound(cycle, links, plan, highest_of(live_under(cycle, plan)), counts);
  }
  EXPECT_GE(counts.bound_binds, 700) << "of " << counts.plans;
  EXPECT_GE(counts.close, 100) << "of " << counts.plans << " where the bound is sharp enough to be broken";
  EXPECT_GE(counts.whole_close, 200) << "of " << counts.whole << " where the bound of whole storages says more";
  std::printf("%d plans, %d waited, bound above the ideal for %d, within 5 %% of the plan for %d\n", counts.plans,
              counts.waited, counts.bound_binds, counts.close);
  std::printf("the bound of whole storages says more for %d, within 5 %% of the plan for %d\n", counts.whole,
              counts.whole_close);
}

TEST(CycleBoundProperty, HoldsForPlansThatAreFound) {
  BoundCounts counts;
  int unfit = 0;
  for (std::uint64_t seed = 0; seed < 20'000 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomNumbers r(seed + 1'000'000);
    const StepCycle cycle(seed % 4 == 0 ? random_cycle_program(r) : random_cycle_program(r, 10, 8));
    const CycleLinks links = random_links(r, 3e9);
    const std::vector<Bytes> least = cycle.least();
    const auto range = static_cast<double>(cycle.peak() - highest_of(least));
    const Bytes budget = highest_of(least) + static_cast<Bytes>(std::ceil(r.part() * range));
    const FoundMoves found =
        find_moves(cycle, links, budget, moves_bound(cycle, links, budget), {.settings = 4, .repairs = 4});
    if (!found.fits) {
      ++unfit;
      continue;
    }
    expect_above_bound(cycle, links, found.plan, budget, counts);
  }
  EXPECT_GE(counts.close, 100) << "of " << counts.plans;
  std::printf("%d plans, %d waited, bound above the ideal for %d, within 5 %% of the plan for %d; none found for %d\n",
              counts.plans, counts.waited, counts.bound_binds, counts.close, unfit);
}

// The derivatives of the bound with re-runs lie between its slopes on both sides, whatever is made again.
TEST(CycleBoundProperty, PricesWithReRunsAreSlopes) {
  constexpr double kPart = 1e-7, kBytes = 1000, kWithin = 1e-3;
  int sloped = 0, reruns = 0;
  for (std::uint64_t seed = 0; seed < 6'000 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomNumbers r(seed + 2'000'000);
    const StepCycle cycle(random_cycle_program(r, 12, 10));
    const CycleLinks links = random_links(r);
    const std::vector<Bytes> least = cycle.least();
    const Bytes budget =
        highest_of(least) +
        static_cast<Bytes>(std::ceil(r.part() * static_cast<double>(cycle.peak() - highest_of(least))));
    RerunPrices prices;
    for (std::size_t g = 0; g < cycle.gaps().size(); ++g)
      prices.emplace_back(r.below(3) == 0 ? std::numeric_limits<double>::infinity() : 2 * r.part() / links.total_out);
    const JointBound here = joint_bound(cycle, links, budget, prices);
    // `with`: the bound with so much more.
    const auto expect = [&](double slope, double step, const std::function<double(double)>& with) {
      const double more = (with(step) - here.seconds) / step, less = (here.seconds - with(-step)) / step;
      const double within = kWithin * std::abs(slope) + 1e-14 * here.seconds / step;
      EXPECT_GE(slope, std::min(more, less) - within);
      EXPECT_LE(slope, std::max(more, less) + within);
      sloped += slope < 0 ? 1 : 0;
    };
    expect(here.per_byte, kBytes,
           [&](double more) { return joint_bound(cycle, links, budget + static_cast<Bytes>(more), prices).seconds; });
    const auto with_rates = [&](double out, double in) {
      CycleLinks changed = links;
      changed.total_out += out, changed.total_in += in;
      return joint_bound(cycle, changed, budget, prices).seconds;
    };
    expect(here.per_out_rate, kPart * links.total_out, [&](double more) { return with_rates(more, 0); });
    expect(here.per_in_rate, kPart * links.total_in, [&](double more) { return with_rates(0, more); });
    expect(here.per_rate, kPart * links.total_in, [&](double more) { return with_rates(more, more); });
    const RerunPrices none(cycle.gaps().size(), RerunPrice(std::numeric_limits<double>::infinity()));
    reruns += here.per_byte < 0 && joint_bound(cycle, links, budget, none).seconds > here.seconds ? 1 : 0;
  }
  EXPECT_GE(sloped, 1000);
  EXPECT_GE(reruns, 300) << "whose bound is lower for what is made again";
  std::printf("%d slopes below 0, %d bounds with re-runs\n", sloped, reruns);
}

// What a judge says who never finds a fault means nothing: without a copy, with a copy of what was there before the
// write, without a fetch.
TEST(CycleBoundProperty, TheCheckerFindsPlantedFaults) {
  int planted = 0;
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    SCOPED_TRACE(seed);
    RandomNumbers r(seed);
    const StepCycle cycle(random_cycle_program(r, 12, 8));
    const CycleLinks links = random_links(r);
    const MovePlan sound = random_sound_plan(r, cycle, links.paths.size());
    std::vector<std::uint32_t> copied;
    for (std::uint32_t m = 0; m < sound.moves.size(); ++m) {
      const CycleGap& gap = cycle.gaps()[sound.moves[m].gap];
      const bool comes_back = gap.needs_copy && gap.returns && cycle.storages()[gap.storage].across;
      if (comes_back && sound.moves[m].copy != PlannedMove::kNoCopy) copied.push_back(m);
    }
    if (copied.empty()) continue;
    const std::uint32_t m = copied[r.below(copied.size())];
    ++planted;
    MovePlan plan = sound;
    plan.moves[m].copy = PlannedMove::kNoCopy;
    EXPECT_NE(replay_turns(turn_of(cycle, plan), links).faults, std::vector<std::string>{}) << "no copy";
    plan = sound;
    plan.moves[m].copy = cycle.gaps()[plan.moves[m].gap].written;
    EXPECT_NE(replay_turns(turn_of(cycle, plan), links).faults, std::vector<std::string>{}) << "a copy too early";
    plan = sound;
    std::erase(plan.fetch_order, m);
    EXPECT_NE(replay_turns(turn_of(cycle, plan), links).faults, std::vector<std::string>{}) << "no fetch";
  }
  EXPECT_GE(planted, 500);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
