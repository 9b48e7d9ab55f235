// Does Capuchin swap by free time, and compute again what is cheaper? By hand: 20 MB are 2 ms on the link.
#include <gtest/gtest.h>

#include "policies/planners/planner.h"
#include "policies/profile/planned_memory.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/sample.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Bytes device_peak(const Trace& t) { return simulated(t).tiers[0].peak_allocated; }

std::size_t copies_out(const Trace& t) {
  return static_cast<std::size_t>(std::count_if(
      t.ops.begin(), t.ops.end(), [&](const Op& op) { return op.kind == OpKind::copy && t.places[op.from] == "hbm"; }));
}

Op of_time(Duration duration) {
  Op op;
  op.duration = duration;
  return op;
}

// `a` of 20 MB rests while `between` ops of 2 ms run, the middle one beside 80 MB.
struct RestingStep {
  explicit RestingStep(std::size_t between, Duration producer = microseconds(2'000)) {
    StepProgram p;
    const StorageId weight = p.preexisting(512, StorageKind::parameter, "weight");
    const StorageId a = p.make(20'000'000, "a");
    p.op("f", {weight}, {a}, of_time(producer));
    for (std::size_t i = 0; i < between; ++i) {
      if (i != between / 2) {
        p.op("other", {}, {}, of_time(microseconds(2'000)));
        continue;
      }
      const StorageId large = p.make(80'000'000, "large");
      p.op("large", {}, {large}, of_time(microseconds(2'000)));
      p.drop(large);
    }
    p.backward();
    p.op("back", {a}, {});
    p.drop(a);
    p.optimizer();
    p.op("update", {weight}, {weight});
    trace = std::move(p).finish();
    trace.constants.event_latency = {};
  }
  Trace trace;
};

// Both together are 100 MB, and 104.9 MB of segments with the weight.
constexpr const char* kTight = ",budget=95MB,min_bytes=0";

TEST(Capuchin, WhatRestsForLongIsSwappedForNothing) {
  const RestingStep step(10);
  const Trace after = rewritten(step.trace, std::string("capuchin:use=both") + kTight);
  EXPECT_EQ(copies_out(after), 1u);
  EXPECT_EQ(count(after, Phase::recompute), 0u) << "its free time is 20 - 2 - 2 ms";
  EXPECT_EQ(simulated(after).end, simulated(step.trace).end);
  EXPECT_LE(device_peak(after), 95'000'000);
}

TEST(Capuchin, WhatIsCheapToMakeIsComputedAgain) {
  const RestingStep step(1, microseconds(200));  // it rests for 2 ms: the device would wait for both copies
  const Trace again = rewritten(step.trace, std::string("capuchin:use=both") + kTight);
  const Trace swapped = rewritten(step.trace, std::string("capuchin:use=swaps") + kTight);
  EXPECT_EQ(count(again, Phase::recompute), 1u);
  EXPECT_EQ(copies_out(again), 0u);
  EXPECT_EQ(copies_out(swapped), 1u);
  EXPECT_LT(simulated(again).end, simulated(swapped).end);
  EXPECT_LE(device_peak(again), 95'000'000);
  EXPECT_LE(device_peak(swapped), 95'000'000);
  expect_same_contents(step.trace, again);
}

TEST(Capuchin, WhatFitsStays) {
  const RestingStep step(10);
  const Trace after = rewritten(step.trace, "capuchin:budget=120MB,min_bytes=0");
  EXPECT_EQ(after.ops.size(), step.trace.ops.size());
  EXPECT_TRUE(has_note(after, "nothing leaves the device"));
}

TEST(Capuchin, SaysWhatIsMissing) {
  const RestingStep step(10);
  const Trace after = rewritten(step.trace, "capuchin:budget=60MB,min_bytes=0");  // less than the large one
  EXPECT_TRUE(has_note(after, "more are needed: at the peak, in forward (op "));
  EXPECT_TRUE(has_note(after, "'aten::large'), activations take 80.00 MB"));
}

// Where much is dropped, what a re-run starts from is gone, too, and re-runs grow until they hold more than they save:
// at 40 % the plan would take 45 %.
TEST(Capuchin, RerunsDoNotMakeThePeak) {
  const Trace step = sample_gpt_124m();
  const Machine machine = test_machine();
  const StepProfile profile(step, machine);
  const Bytes all = PlannedMemory(profile).peak();
  for (const int percent : {70, 60, 50, 40}) {
    const Budget budget{all * percent / 100};
    const MemoryPlan plan = planner_named("capuchin")(profile, budget, machine, *test_pricer(machine)).best;
    EXPECT_LE(planned_peak(profile, plan), budget.device) << percent;
  }
}

// Parameters of 60 MB, which stay. Forward: `a` rests beside 80 MB, `b` beside 20 MB. At the peak without them the
// device holds 60 + 80 MB, so that it is no use to move `b`: 60 + 20 + 20 MB.
TEST(Capuchin, WhatIsInVainStays) {
  StepProgram p;
  const StorageId weight = p.preexisting(60'000'000, StorageKind::parameter, "weight");
  std::vector<StorageId> resting;
  for (const Bytes beside : {80'000'000, 20'000'000}) {
    const StorageId a = p.make(20'000'000, "a");
    p.op("f", {weight}, {a}, of_time(microseconds(2'000)));
    const StorageId large = p.make(beside, "large");
    p.op("large", {}, {large}, of_time(microseconds(20'000)));
    p.drop(large);
    p.op("g", {a}, {}, of_time(microseconds(2'000)));
    p.drop(a);
    resting.push_back(a);
  }
  p.backward();
  p.op("back", {weight}, {});
  const Trace step = std::move(p).finish();
  const Machine machine = test_machine();
  for (const char* use : {"capuchin:use=both", "capuchin:use=swaps"}) {
    const MemoryPlan plan =
        planner_named(use)(StepProfile(step, machine), {90'000'000}, machine, *test_pricer(machine)).best;
    ASSERT_EQ(plan.storages.size(), 1u) << use;
    EXPECT_EQ(plan.storages.front().storage, resting.front()) << use;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
