// Is save_on_cpu the offload that it names, and does every copy stand in the way of the compute stream? By hand:
// kernels of 1 us; 20 kB are 2 us on the link, 4 us from and to memory that is not page-locked.
#include <gtest/gtest.h>

#include "policies/planners/planner.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/same_program.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Two results are saved, and read by backward.
Trace two_saved() {
  StepProgram p;
  const StorageId a = p.make(20'000, "a"), b = p.make(20'000, "b");
  p.op("f", {}, {a});
  p.saves({a});
  p.op("g", {a}, {b});
  p.saves({b});
  p.backward();
  p.op("g_backward", {b}, {});
  p.drop(b);
  p.op("f_backward", {a}, {});
  p.drop(a);
  Trace t = std::move(p).finish();
  t.constants.event_latency = {};
  return t;
}

TEST(SaveOnCpu, IsASettingOfOffload) {
  const Trace step = gpt_step({.layers = 3, .hidden = 256, .heads = 4, .sequence = 128, .batch = 2});
  const struct {
    const char *save, *offload;
  } pairs[] = {{"save_on_cpu:pin_memory=1", "offload:what=activations,to=host,min_bytes=0,inputs=1,stream=compute"},
               {"save_on_cpu", "offload:what=activations,to=host,min_bytes=0,inputs=1,pinned=0"}};
  for (const auto& [save, offload] : pairs) {
    Trace named = rewritten(step, save), other = rewritten(step, offload);
    EXPECT_GT(named.ops.size(), step.ops.size()) << save;
    named.notes = other.notes = {};
    EXPECT_EQ(program_difference(named, other), "") << save;
    const Machine machine = test_machine();
    const auto pricer = test_pricer(machine);
    EXPECT_TRUE(plan_rewriters(step, {parse_policy(save)}, machine, *pricer).plan ==
                plan_rewriters(step, {parse_policy(offload)}, machine, *pricer).plan)
        << save;
  }
}

TEST(SaveOnCpu, CopiesWaitAndAreWaitedFor) {
  const Trace step = two_saved();
  EXPECT_EQ(simulated(step).end, microseconds(4));
  // f, a leaves, g, b leaves, b comes back, g_backward, a comes back, f_backward: 4 + 4 x 2.
  EXPECT_EQ(simulated(rewritten(step, "save_on_cpu:pin_memory=1")).end, microseconds(12));
  EXPECT_EQ(simulated(rewritten(step, "save_on_cpu")).end, microseconds(20)) << "4 + 4 x 4";
  EXPECT_EQ(simulated(rewritten(step, "save_on_cpu")).tiers[0].peak_allocated, 40'000) << "a and b, while g runs";
}

TEST(SaveOnCpu, RefusesInItsOwnName) {
  StepProgram p;
  p.op("f", {}, {});
  p.backward();
  p.op("f_backward", {}, {});
  const Trace step = std::move(p).finish();
  EXPECT_NE(refusal(step, "save_on_cpu").find("Policy 'save_on_cpu': trace 'small step' has no activations"),
            std::string::npos)
      << refusal(step, "save_on_cpu");
}

TEST(SaveOnCpu, SaysWhetherTheBudgetHolds) {
  EXPECT_TRUE(has_note(rewritten(two_saved(), "save_on_cpu:budget=1GB"), "which it keeps to"));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
