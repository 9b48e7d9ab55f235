// Does the count of what is live without absent storages agree with the plan's, made by others? And are fetches and
// drops moved as far as memory allows, and no further?
#include "policies/planners/absence.h"

#include <gtest/gtest.h>

#include "policies/plan/plan_check.h"
#include "policies/profile/planned_memory.h"
#include "tests/support/sample.h"
#include "tests/support/step_program.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

MemoryPlan plan_of(const std::vector<Absence>& absences) {
  MemoryPlan plan;
  plan.tiers.emplace_back();
  plan.tiers.back().tier = "host";
  plan.storages = decisions_of(absences);
  return plan;
}

Absence absence_in(const Gap& gap) {
  Absence a{gap, gap.after + 1, gap.before};
  a.fetched_next = gap.wraps;
  return a;
}

// One gap of each storage, some across the boundary of the step.
TEST(Absence, LiveBytesAreThoseOfTheirPlan) {
  const Trace step = sample_gpt_124m();
  const Machine machine = test_machine();
  const StepProfile profile(step, machine);
  AbsentMemory memory(profile);
  EXPECT_EQ(memory.peak(), PlannedMemory(profile).peak());
  std::vector<Absence> absences;
  std::size_t crossing = 0;
  for (std::size_t i = 0; i < profile.gaps().size(); i += 7) {
    const Absence a = absence_in(profile.gaps()[i]);
    if (a.gap.before < 2 || (!a.crosses() && a.fetched <= a.dropped) || a.dropped >= step.ops.size()) continue;
    absences.push_back(a);
    crossing += a.crosses() ? 1 : 0;
    memory.take_away(a);
  }
  EXPECT_GT(crossing, 5u);
  const MemoryPlan plan = plan_of(absences);
  EXPECT_EQ(check_plan(plan, step, profile.flow()), std::vector<std::string>{});
  EXPECT_EQ(memory.peak(), planned_peak(profile, plan));
  for (const Absence& a : absences) memory.take_back(a);
  EXPECT_EQ(memory.peak(), PlannedMemory(profile).peak());
}

// a rests for eight ops; beside the fourth and the fifth there is a large one.
struct Beside {
  Beside() {
    StepProgram p;
    a = p.make(1024, "a");
    made = p.op("f", {}, {a});
    for (int i = 0; i < 3; ++i) p.op("other", {}, {});
    large = p.make(4096, "large");
    p.op("large", {}, {large});
    p.op("large", {large}, {large});
    freed = p.drop(large);
    for (int i = 0; i < 3; ++i) p.op("other", {}, {});
    used = p.op("g", {a}, {});
    p.drop(a);
    trace = std::move(p).finish();
  }
  StorageId a = kNoStorage, large = kNoStorage;
  OpId made = kNoOp, freed = kNoOp, used = kNoOp;
  Trace trace;
};

TEST(Absence, MovesAsFarAsMemoryAllows) {
  const Beside step;
  const Machine machine = test_machine();
  const StepProfile profile(step.trace, machine);
  AbsentMemory memory(profile);
  Absence away = absence_in(profile.gaps(step.a).front());
  memory.take_away(away);
  memory.fetch_early(away, 4096);
  EXPECT_EQ(away.fetched, step.freed + 1);
  memory.drop_late(away, 4096, step.used);
  EXPECT_EQ(away.dropped, step.made + 4) << "before the alloc of the large one, behind three ops";
  EXPECT_EQ(memory.peak(), 4096);
  EXPECT_FALSE(memory.stay(away, 4096));
  EXPECT_EQ(memory.peak(), 4096);
  EXPECT_TRUE(memory.stay(away, 5120));
  EXPECT_EQ(memory.peak(), 5120);
}

TEST(Absence, WhatTheHostTouchesDoesNotLeave) {
  StepProgram p;
  const StorageId a = p.make(1024, "a"), b = p.make(1024, "b");
  p.op("f", {}, {a, b});
  Op host;
  host.kind = OpKind::host_work;
  p.op("read", {a}, {}, host);
  p.op("g", {b}, {});
  const Trace step = std::move(p).finish();
  const Machine machine = test_machine();
  const StepProfile profile(step, machine);
  EXPECT_FALSE(may_leave(profile, a));
  EXPECT_TRUE(may_leave(profile, b));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
