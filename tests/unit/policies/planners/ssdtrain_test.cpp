// Does SSDTrain write as much as forward has time for, and use from memory what is still on its way? By hand: ops of 10
// ms; 20 MB are 2 ms to the host and 10 ms more to storage, which writes 2 GB/s and reads 4.
#include <gtest/gtest.h>

#include "policies/plan/plan_check.h"
#include "policies/planners/planner.h"
#include "policies/profile/planned_memory.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/sample.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Op of_ten_ms() {
  Op op;
  op.duration = microseconds(10'000);
  return op;
}

// So many layers of 10 ms, each of which makes 20 MB that its backward of twice 10 ms reads, and a loss of 10 ms.
struct Layers {
  explicit Layers(std::size_t count, Bytes bytes = 20'000'000) {
    StepProgram p;
    for (std::size_t i = 0; i < count; ++i) {
      made.push_back(p.make(bytes, "layer"));
      p.op("f", {}, {made.back()}, of_ten_ms());
      p.saves({made.back()});
    }
    p.op("loss", {}, {}, of_ten_ms());
    p.backward();
    for (std::size_t i = count; i-- > 0;) {
      for (int half = 0; half < 2; ++half) p.op("f_backward", {made[i]}, {}, of_ten_ms());
      p.drop(made[i]);
    }
    trace = std::move(p).finish();
  }
  std::vector<StorageId> made;
  Trace trace;
};

struct SsdTrainPlan {
  explicit SsdTrainPlan(const Trace& step, const std::string& policy = "ssdtrain:min_bytes=0")
      : machine(test_machine()), profile(step, machine) {
    plan = planner_named(policy)(profile, {MiB(1)}, machine, *test_pricer(machine)).best;
    EXPECT_EQ(check_plan(plan, step, profile.flow()), std::vector<std::string>{});
  }
  std::size_t away() const {
    return static_cast<std::size_t>(std::count_if(plan.storages.begin(), plan.storages.end(),
                                                  [](const StorageDecision& d) { return !d.fetches.empty(); }));
  }
  Machine machine;
  StepProfile profile;
  MemoryPlan plan;
};

TEST(SsdTrain, AtMostWhatForwardHasTimeToWrite) {
  // Forward takes 90 ms: 180 MB at 2 GB/s, which is more than 8 layers make.
  const Layers fast(8);
  EXPECT_EQ(SsdTrainPlan(fast.trace).plan.storages.size(), 8u);
  // Of layers of 50 MB it is 3.6.
  const Layers large(8, 50'000'000);
  const SsdTrainPlan planned(large.trace);
  ASSERT_EQ(planned.plan.storages.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(planned.plan.storages[i].storage, large.made[i]);
  EXPECT_EQ(SsdTrainPlan(large.trace, "ssdtrain:min_bytes=0,amount=all").plan.storages.size(), 8u);
  // To the host 10 GB/s: 900 MB.
  EXPECT_EQ(SsdTrainPlan(large.trace, "ssdtrain:min_bytes=0,to=host").plan.storages.size(), 8u);
}

// Written at 10 + 12 ms, and then every 10: 22, 32, ... 92 ms. Read from storage in 5 + 2 ms: the last layer's would
// begin at 90 - 7 ms, the one before at 110 - 7. The last is still being written, the one before has been at 82.
TEST(SsdTrain, WhatIsStillBeingWrittenIsUsedFromMemory) {
  const Layers step(8);
  const SsdTrainPlan planned(step.trace);
  ASSERT_EQ(planned.plan.storages.size(), 8u);
  EXPECT_EQ(planned.away(), 7u);
  EXPECT_TRUE(planned.plan.storages[7].fetches.empty());
  EXPECT_EQ(planned.plan.storages[7].copies.size(), 1u) << "its write goes on";
  const Trace after = rewritten(step.trace, "ssdtrain:min_bytes=0");
  EXPECT_TRUE(has_note(after, "1 storage (20.00 MB) of these is written too late to leave before its read begins"));
  EXPECT_EQ(simulated(after).end, simulated(step.trace).end) << "all copies hide";
  EXPECT_LT(simulated(after).tiers[0].peak_allocated, simulated(step.trace).tiers[0].peak_allocated);
}

TEST(SsdTrain, AStorageSavedTwiceIsWrittenOnce) {
  StepProgram p;
  const StorageId a = p.make(20'000'000, "a");
  p.op("f", {}, {a}, of_ten_ms());
  p.saves({a});
  for (int i = 0; i < 4; ++i) {
    p.op("g", {a}, {}, of_ten_ms());
    p.saves({a});
  }
  p.backward();
  p.op("other", {}, {}, of_ten_ms());
  p.op("g_backward", {a}, {}, of_ten_ms());
  p.drop(a);
  const Trace step = std::move(p).finish();
  const SsdTrainPlan planned(step);
  ASSERT_EQ(planned.plan.storages.size(), 1u);
  const StorageDecision& d = planned.plan.storages[0];
  ASSERT_EQ(d.copies.size(), 1u);
  EXPECT_EQ(d.copies[0].at.op, 2u) << "behind what makes it, although others read it later";
  EXPECT_GT(d.drops[0].at.op, 6u) << "the last of them";
}

TEST(SsdTrain, WithoutStorageItIsRefusedAndWithoutActivationsNothingIsDone) {
  const Layers step(2);
  Machine machine = test_machine();
  machine.tiers[static_cast<std::size_t>(machine.tier("nvme"))].name = "elsewhere";
  const StepProfile profile(step.trace, machine);
  EXPECT_THROW(planner_named("ssdtrain")(profile, {MiB(1)}, machine, *test_pricer(machine)), UsageError);
  StepProgram p;
  p.op("f", {}, {});
  p.backward();
  p.op("f_backward", {}, {});
  EXPECT_TRUE(has_note(rewritten(std::move(p).finish(), "ssdtrain"), "nothing leaves the device"));
}

TEST(SsdTrain, OfAWholeStepNoMoreIsWrittenThanForwardHasTimeFor) {
  const Trace step = sample_gpt_124m();
  const SsdTrainPlan planned(step, "ssdtrain");
  ASSERT_FALSE(planned.plan.storages.empty());
  for (const Pass& pass : passes(step)) {
    Bytes written = 0;
    for (const StorageDecision& d : planned.plan.storages)
      if (d.copies[0].at.op >= pass.begin && d.copies[0].at.op < pass.backward)
        written += step.storages[d.storage].bytes;
    Time begin = kNever, end{};
    for (OpId op = pass.begin; op < pass.backward; ++op) {
      if (step.ops[op].kind != OpKind::kernel) continue;
      begin = std::min(begin, planned.profile.start(op));
      end = std::max(end, planned.profile.end(op));
    }
    EXPECT_LE(static_cast<double>(written), 2e9 * to_seconds(end - begin));
    EXPECT_GT(static_cast<double>(written), 1.5e9 * to_seconds(end - begin)) << "and not much less";
  }
  EXPECT_LE(planned_peak(planned.profile, planned.plan), PlannedMemory(planned.profile).peak());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
