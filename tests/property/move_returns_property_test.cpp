// The pass that says when what is away comes back gives exactly what the plain one does
// (tests/support/plain_move_returns.h): on random cycles of 2 to 600 slots with one path or two, and on cycles as
// training steps are; with what the scheduler chooses as links have time, and with what is used last whatever time they
// have, which makes copies late.
#include <gtest/gtest.h>

#include <algorithm>

#include "policies/cycle/move_choice.h"
#include "policies/cycle/move_passes.h"
#include "tests/support/plain_move_returns.h"
#include "tests/support/training_cycle.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Compared {
  int plans = 0, changed = 0, late = 0;  // all; that the pass changed; whose copies out are not done in time
};

void expect_equal(const MovePlan& fast, const MovePlan& plain) {
  ASSERT_EQ(fast.moves.size(), plain.moves.size());
  for (std::size_t m = 0; m < fast.moves.size(); ++m) {
    const PlannedMove &a = fast.moves[m], &b = plain.moves[m];
    ASSERT_EQ(std::tuple(a.gap, a.path, a.copy, a.drop, a.fetch), std::tuple(b.gap, b.path, b.copy, b.drop, b.fetch))
        << "move " << m;
  }
  ASSERT_EQ(fast.fetch_order, plain.fetch_order);
}

void compare(RandomNumbers& r, const StepCycle& cycle, const CycleLinks& links, Bytes budget, Compared& all) {
  MoveSettings settings;
  settings.look_ahead = r.one_in(2) ? 1 : 8;
  settings.margin = r.one_in(2) ? 0 : 1;
  std::vector<Duration> times;
  for (const CycleSlot& slot : cycle.slots()) times.push_back(slot.time);
  const std::vector<Duration> waits(times.size());
  const CopyTimes copies(cycle, links);
  ScheduleTable table(cycle, links, copies, budget, settings, times, waits, ExcessTree(cycle.live(), times, budget));
  MovePlan plan;
  MoveChoice choice(table, plan.moves);
  if (r.one_in(2))
    choice.run_farthest(0);
  else
    choice.run(0);
  order_departures(table, plan);
  MovePlan fast = plan, plain = plan;
  place_returns(table, choice.latest(), fast);
  plain_place_returns(table, choice.latest(), plain);
  expect_equal(fast, plain);
  ++all.plans;
  for (std::size_t m = 0; m < plan.moves.size(); ++m)
    if (fast.moves[m].drop != plan.moves[m].drop) {
      ++all.late;
      break;
    }
  for (std::size_t m = 0; m < plan.moves.size(); ++m)
    if (fast.moves[m].fetch != plan.moves[m].fetch) {
      ++all.changed;
      break;
    }
}

TEST(MoveReturnsProperty, AreThoseOfThePlainPass) {
  Compared all;
  for (std::uint64_t seed = 0; seed < 3000 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomNumbers r(seed);
    if (r.one_in(3)) {
      const TrainingCycle t = training_cycle(r, 8, 60);
      compare(r, StepCycle(t.program), t.links, t.budget, all);
      continue;
    }
    const bool large = r.one_in(20);
    const StepCycle cycle(random_cycle_program(r, large ? 600 : 60, large ? 300 : 40));
    const std::vector<Bytes> least = cycle.least();
    const Bytes lowest = std::max<Bytes>(1, *std::max_element(least.begin(), least.end()));
    const Bytes budget =
        lowest + static_cast<Bytes>(r.part() * static_cast<double>(std::max<Bytes>(0, cycle.peak() - lowest)));
    compare(r, cycle, random_links(r, 1e8, 1e12), budget, all);
  }
  std::printf("%d plans, %d of them with fetches before their touch, %d that leave at another time than was chosen\n",
              all.plans, all.changed, all.late);
  EXPECT_GT(all.changed, all.plans / 4);
  EXPECT_GT(all.late, all.plans / 4);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
