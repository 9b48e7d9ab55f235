// Is the work of a step the same under plans that keep, move or run again what it has, and another one under policies
// that change its kernels?
#include "study/step_work.h"

#include <gtest/gtest.h>

#include "tests/support/gpt_trace.h"
#include "tests/support/rewrite_checks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Trace worked_step() { return gpt_step({.layers = 2, .hidden = 64, .sequence = 64, .batch = 2}); }

TEST(StepWork, PlansOfMemoryKeepIt) {
  const Trace step = worked_step();
  const StepWork work(step);
  for (const char* policy : {"checkpoint:mode=full", "offload:what=activations,to=host,min_bytes=0", "chen:mode=sqrt",
                             "vdnn:min_bytes=0", "capuchin:min_bytes=0,budget=60%",
                             "megatron:recompute_granularity=full,recompute_method=uniform", "ssdtrain:min_bytes=0"}) {
    const Trace planned = rewritten(step, policy);
    EXPECT_TRUE(StepWork(planned) == work) << policy;
    EXPECT_TRUE(planned.ops.size() > step.ops.size() || std::string(policy).starts_with("capuchin")) << policy;
  }
}

TEST(StepWork, PoliciesThatChangeKernelsDoNot) {
  const Trace step = worked_step();
  for (const char* policy : {"reversible", "offload:what=optimizer,to=host"})
    EXPECT_FALSE(StepWork(rewritten(step, policy)) == StepWork(step)) << policy;
}

TEST(StepWork, AnotherDurationOrOneKernelLessIsOtherWork) {
  const Trace step = worked_step();
  const auto is_kernel = [](const Op& op) { return op.kind == OpKind::kernel; };
  Trace slower = step, fewer = step;
  std::ranges::find_if(slower.ops, is_kernel)->duration += nanoseconds(1);
  std::ranges::find_if(fewer.ops, is_kernel)->kind = OpKind::mark;
  EXPECT_FALSE(StepWork(slower) == StepWork(step));
  EXPECT_FALSE(StepWork(fewer) == StepWork(step));
  Trace again = step;
  Op rerun = *std::ranges::find_if(step.ops, is_kernel);
  rerun.phase = Phase::recompute;
  rerun.source = 0;
  again.ops.push_back(rerun);
  EXPECT_TRUE(StepWork(again) == StepWork(step)) << "what runs again is no other work";
  again.ops.back().source = kNoOp;
  EXPECT_FALSE(StepWork(again) == StepWork(step)) << "it repeats nothing of the step";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
