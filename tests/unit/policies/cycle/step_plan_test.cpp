// A step of whole storages: what is planned of moves, and what its certificate says, are the same.
#include "policies/cycle/step_plan.h"

#include <gtest/gtest.h>

#include "policies/cycle/cycle_of_step.h"
#include "policies/cycle/plan_certificate.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/small_cycle.h"
#include "tests/support/step_program.h"
#include "tests/support/test_machine.h"
#include "tests/support/turn_of_plan.h"
#include "traces/trace/trace_file.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Op of_seconds(double seconds) {
  Op cost;
  cost.duration = from_seconds(seconds);
  return cost;
}

// Three activations of 6, 5 and 4 GB rest while 8 GB are used beside them: within 16 GB 7 of them have to be away, and
// as whole ones at least 9.
Trace step_of_wholes() {
  StepProgram p;
  const StorageId weight = p.preexisting(1'048'576, StorageKind::parameter, "weight");
  const StorageId six = p.make(6 * kGB, "six"), five = p.make(5 * kGB, "five"), four = p.make(4 * kGB, "four");
  p.op("forward", {weight}, {six, five, four}, of_seconds(0.5));
  const StorageId beside = p.make(8 * kGB, "beside");
  p.op("fill", {weight}, {beside}, of_seconds(0.25));
  p.op("use", {beside}, {}, of_seconds(0.25));
  p.drop(beside);
  p.backward();
  p.op("backward", {six, five, four, weight}, {}, of_seconds(1));
  for (const StorageId one : {six, five, four}) p.drop(one);
  p.optimizer();
  return std::move(p).finish();
}

TEST(StepPlanOfWholeStorages, IsProvedToBeTheFastestThatMoves) {
  const ScratchFolder folder;
  write_trace(step_of_wholes(), folder / "step.mwt");
  const Trace step = read_trace(folder / "step.mwt");
  const Machine machine = test_machine();
  const StepProfile profile(step, machine);
  const CycleLinks links = links_of_machine(machine, {"host"});
  const Bytes budget = 16 * kGB + 1'048'576;
  StepPlanSettings settings;
  settings.recompute = false;
  const StepPlan found = plan_step(profile, budget, settings);
  const PlanCertificate c = plan_certificate(profile, budget, links);
  ASSERT_TRUE(found.fits);
  // 9 GB out before `fill`, and back before `backward`.
  const double copies = 9e9 / links.total_out + 9e9 / links.total_in;
  EXPECT_NEAR(found.seconds, found.ideal_seconds + copies, 1e-4);
  EXPECT_EQ(found.moves, 2u);
  EXPECT_NEAR(c.moves_seconds, found.seconds, 1e-4 * found.seconds) << "no plan that moves is faster";
  EXPECT_LT(found.moves_bound.seconds, c.moves_seconds - 0.2 * copies) << "of bytes alone it could be";
  EXPECT_LT(c.joint_seconds, c.moves_seconds) << "plans that compute again have a bound of their own";
  const ReplayedTurns replayed = replay_turns(turn_of(profile, found.plan), links);
  EXPECT_EQ(replayed.faults, std::vector<std::string>{});
  EXPECT_LE(replayed.highest, budget);
  EXPECT_NEAR(replayed.seconds, found.seconds, 1e-6 * found.seconds);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
