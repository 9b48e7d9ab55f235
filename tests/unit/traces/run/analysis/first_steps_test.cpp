// What an allocator reserves from a job's first step on, worked out by hand.
#include "traces/run/analysis/first_steps.h"

#include <gtest/gtest.h>

#include "models/hw/machine_file.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/generate.h"
#include "sim/trace/trace_builder.h"
#include "sim/trace/trace_check.h"
#include "tests/support/rewrite_checks.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// A parameter of 100 MiB and a moment of 12 MiB; an activation of 100 MiB lives in forward, then the optimizer runs.
// With `kept_gradient` a gradient of 30 MiB of the step before goes first, and one of this step stays.
Trace step(const std::string& moment_label, bool kept_gradient = false, WaitFor freed = WaitFor::nothing) {
  TraceBuilder builder;
  Trace& t = builder.trace();
  t.name = "step";
  t.knowledge = {true, true, true, false, false};
  t.constants = {};
  builder.add_thread("main");
  builder.add_stream("compute", StreamRole::compute);
  const StorageId parameter = builder.add_storage(MiB(100), StorageKind::parameter, "hbm", "w", true);
  const StorageId moment = builder.add_storage(MiB(12), StorageKind::optimizer_state, "hbm", moment_label, true);
  const StorageId old = builder.add_storage(MiB(30), StorageKind::gradient, "hbm", "g", kept_gradient);
  const StorageId activation = builder.add_storage(MiB(100), StorageKind::activation, "hbm", "a", false);
  const StorageId gradient = builder.add_storage(MiB(30), StorageKind::gradient, "hbm", "g", false);
  const auto kernel = [&](std::vector<Use> uses) {
    Op op;
    op.kind = OpKind::kernel;
    op.duration = microseconds(10);
    builder.append(op, uses);
  };
  const auto read = [](StorageId s) { return Use{s, 0, Access::read}; };
  builder.append(Op{});
  if (kept_gradient) builder.free(old, 0);
  builder.alloc(activation, 0);
  kernel({read(parameter), {activation, 1, Access::write}});
  const OpId free = builder.free(activation, 0);
  builder.trace().ops[free].wait_for = freed;
  if (kept_gradient) {
    builder.alloc(gradient, 0);
    kernel({{gradient, 1, Access::write}});
  }
  kernel({read(moment), {moment, 1, Access::write}});
  return std::move(builder).finish();
}

std::optional<Bytes> reserved(const Trace& trace, const std::string& allocator = "pytorch") {
  RunSettings settings;
  settings.allocator = allocator;
  const memwall::Run run = simulate_and_record(trace, load_machine("a100-sxm-80gb", {}), settings);
  EXPECT_TRUE(run.result.fits);
  return reserved_from_first_step(run, {0}).at(0);
}

// Beside each other from the start on: 100 + 12 + 100. Made in the first step, the moment takes the low part of the
// activation's block; what is left, 88 MiB, is too little for the next.
TEST(FirstSteps, AMomentTakesABlockThatTheNextStepLacks) {
  EXPECT_EQ(reserved(step("w.exp_avg")), MiB(300));
  EXPECT_EQ(reserved(step("w.exp_avg_sq")), MiB(300));
  EXPECT_EQ(reserved(step("momentum_buffer")), MiB(300));
}

// A block that another stream still uses comes back when that is through, here before the optimizer's kernel is called.
TEST(FirstSteps, ALateFreeIsOneWhenItsStreamIsThrough) {
  EXPECT_EQ(reserved(step("w.exp_avg", false, WaitFor::stream)), MiB(212))
      << "the host is ahead: the moment finds no block, and the activation finds its own again";
}

// What stays from the first step is what the second step gives back: 100 + 30 + 100, the gradient of the first step is
// in a block of its own (the activation's is larger: best fit takes it, as it is the only one), and so is the moment's.
TEST(FirstSteps, AGradientOfTheStepBeforeIsThatOfTheFirstStep) {
  // Start: w 100, g 30. Step 1: g goes (30 free), a 100 comes and goes; the new g takes the 30, the moment 12 of a's
  // 100. Step 2: g goes, a finds 88 and 30: 100 more.
  EXPECT_EQ(reserved(step("w.exp_avg", true)), MiB(330));
}

TEST(FirstSteps, NothingIsToldWhereNoMomentIsMadeSo) {
  EXPECT_EQ(reserved(step("w.main")), std::nullopt);
  EXPECT_EQ(reserved(step("w.exp_avg of a partition")), std::nullopt);
  EXPECT_EQ(reserved(step("w.exp_avg"), "ideal"), std::nullopt);
}

// torch.optim makes its moments in its first step, DeepSpeed before it (initialize_optimizer_states).
TEST(FirstSteps, DeepSpeedsMomentsAreThereBefore) {
  TrainingJob job = load_training_job("gpt2-124m");
  set_all(job, {"layers=2", "width=64", "heads=4", "vocabulary=100", "longest=32", "sequence=32", "batch=1"});
  Trace t = generate_step(job.model, job.recipe);
  t.knowledge.timing = true;
  for (Op& op : t.ops)
    if (op.kind == OpKind::kernel) op.duration = microseconds(1);
  EXPECT_TRUE(reserved(t));
  EXPECT_TRUE(reserved(rewritten(t, "fsdp:ranks=2")));
  EXPECT_FALSE(reserved(rewritten(t, "deepspeed:stage=2,ranks=2")));
  EXPECT_FALSE(reserved(rewritten(t, "deepspeed:stage=3,ranks=2")));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
