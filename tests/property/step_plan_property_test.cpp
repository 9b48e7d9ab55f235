// Are the plans that policies/cycle finds for random small steps carried out by a checker written apart
// (tests/support/turn_replay.h), within their budget and as fast as they say? And no faster than the bounds?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "policies/cycle/step_plan.h"
#include "policies/plan/plan_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/random_step.h"
#include "tests/support/test_machine.h"
#include "tests/support/turn_of_plan.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// A random step, or one of a GPT, whose copies to the host take as long as its kernels, or longer, or less.
Trace step_to_bound() {
  Trace step;
  int times = 10'000, slower = 1;
  if (*rc::gen::inRange(0, 3) == 0) {
    GptShape shape;
    shape.layers = *rc::gen::inRange(1, 4);
    shape.hidden = 256, shape.sequence = 128;
    shape.bytes_per_second = shape.flops_per_second = *rc::gen::inRange(10, 400) * 1e9;
    step = gpt_step(shape);
    times = 1;
  } else {
    step = random_step(*rc::gen::inRange<std::size_t>(1, 3), *rc::gen::arbitrary<bool>());
    slower = *rc::gen::element(500, 3000, 10'000);
  }
  for (Storage& storage : step.storages) storage.bytes *= times;
  for (Op& op : step.ops) op.duration *= slower;
  return step;
}

Bytes random_budget(const StepCycle& cycle) {
  const std::vector<Bytes> least = cycle.least();
  const Bytes lowest = *std::max_element(least.begin(), least.end());
  return lowest + (cycle.peak() - lowest) / 100 * *rc::gen::inRange<Bytes>(0, 101);
}

RC_GTEST_PROP(StepPlanProperty, PlansAreCarriedOutWithinTheirBudgetAndNoFasterThanTheBounds, ()) {
  const Trace step = step_to_bound();
  const Machine machine = test_machine();
  const StepProfile profile(step, machine);
  const StepCycle cycle(cycle_of_step(profile).program);
  StepPlanSettings settings;
  settings.recompute = *rc::gen::arbitrary<bool>();
  settings.search = *rc::gen::arbitrary<bool>();
  const Bytes budget = random_budget(cycle);
  const StepPlan found = plan_step(profile, budget, settings);
  RC_CLASSIFY(found.fits, "fits");
  RC_CLASSIFY(found.fits && found.reruns > 0, "with re-runs");
  RC_CLASSIFY(found.fits && found.moves > 0, "with moves");
  RC_ASSERT(found.joint_bound_seconds <= found.moves_bound.seconds * (1 + 1e-9) || !settings.recompute);
  if (!found.fits) return;
  RC_ASSERT(check_plan(found.plan, step, profile.flow()) == std::vector<std::string>{});
  const ReplayedTurns replayed = replay_turns(turn_of(profile, found.plan), links_of_machine(machine, settings.tiers));
  RC_ASSERT(replayed.faults == std::vector<std::string>{});
  RC_ASSERT(replayed.highest <= budget);
  const double bound =
      found.reruns > 0 ? found.joint_bound_seconds : std::min(found.joint_bound_seconds, found.moves_bound.seconds);
  RC_CLASSIFY(bound > found.ideal_seconds * 1.001, "the bound binds");
  RC_ASSERT(replayed.seconds >= bound * (1 - 1e-9));
  RC_ASSERT(found.seconds >= bound * (1 - 1e-9));
  RC_ASSERT(std::abs(replayed.seconds - found.seconds) <= 1e-3 * found.seconds);
}

StepPlanSettings random_settings() {
  StepPlanSettings settings;
  settings.recompute = *rc::gen::arbitrary<bool>();
  settings.search = *rc::gen::inRange(0, 3) == 0;  // takes long
  settings.roughly = *rc::gen::arbitrary<bool>();
  settings.keep_results = *rc::gen::arbitrary<bool>();
  settings.robust = *rc::gen::element(0.0, 0.5);
  settings.finest = *rc::gen::element<Bytes>(16, 16384);
  if (*rc::gen::arbitrary<bool>()) settings.tiers.push_back("nvme");
  return settings;
}

// A profile keeps bounds, candidates and orders for the next who asks.
RC_GTEST_PROP(StepPlanProperty, PlansDoNotDependOnWhatTheProfileWasAskedBefore, ()) {
  const Trace step = step_to_bound();
  const Machine machine = test_machine();
  const StepProfile asked(step, machine);
  const StepCycle cycle(cycle_of_step(asked).program);
  const Bytes budgets[] = {random_budget(cycle), random_budget(cycle)};
  for (int i = 0; i < 3; ++i) {
    const StepPlanSettings settings = random_settings();
    const Bytes budget = *rc::gen::element(budgets[0], budgets[1]);
    const StepPlan found = plan_step(asked, budget, settings);
    const StepPlan alone = plan_step(StepProfile(step, machine), budget, settings);
    RC_ASSERT(found.plan == alone.plan);
    RC_ASSERT(found.seconds == alone.seconds);
    RC_ASSERT(found.joint_bound_seconds == alone.joint_bound_seconds);
    RC_ASSERT(found.moves_bound.seconds == alone.moves_bound.seconds);
    RC_CLASSIFY(found.fits && found.reruns > 0, "with re-runs");
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
