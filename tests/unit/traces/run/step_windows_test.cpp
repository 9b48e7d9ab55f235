// Is a step's time what a step takes, whatever the GPU still had to do when the capture began?
#include <gtest/gtest.h>

#include "sim/engine/simulation.h"
#include "sim/trace/step_count.h"
#include "sim/trace/trace_builder.h"
#include "tests/support/test_machine.h"
#include "traces/run/analysis/energy.h"
#include "traces/run/analysis/step_periods.h"
#include "traces/run/run.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Duration kKernel = microseconds(1000);

// `steps` steps of one kernel each, launched every `period`; `backlog`: what the stream has to do before.
Run run_of(int steps, Duration period, Duration backlog, Duration kernel = kKernel) {
  TraceBuilder b;
  Trace& t = b.trace();
  b.add_thread("main");
  b.add_stream("s", StreamRole::compute);
  t.place("hbm");
  t.knowledge = {.timing = true};
  Op mark;
  mark.kind = OpKind::mark;
  std::vector<OpId> firsts;
  for (int i = 0; i < steps; ++i) {
    Op begin = mark;
    begin.host_gap = i == 0 ? Duration{} : period - microseconds(1);
    firsts.push_back(b.append(begin));
    if (i == 0 && backlog > Duration{}) {
      Op before;
      before.kind = OpKind::kernel, before.placed = true, before.duration = backlog;
      b.append(before);
    }
    Op work;
    work.kind = OpKind::kernel, work.duration = kernel, work.host_cost = microseconds(1);
    b.append(work);
  }
  for (std::size_t i = 0; i < firsts.size(); ++i)
    t.steps.push_back({"step", firsts[i], i + 1 < firsts.size() ? firsts[i + 1] : static_cast<OpId>(t.ops.size())});
  t.constants = {};
  t.constants.launch_queue_depth = 0;
  Run run;
  run.machine = machine_of_ranks(test_machine(), b.trace());
  run.result = simulate(b.trace(), test_machine(), {});
  run.trace = std::move(b).finish();
  return run;
}

double period(const Run& run) { return to_microseconds(mean_step(run)); }

TEST(StepWindows, BacklogOfAGpuThatBindsIsNoSteps) {
  // The host is 10 ms ahead, before and behind: a step takes what its kernel takes.
  EXPECT_NEAR(period(run_of(1, microseconds(100), 10 * kKernel)), 1000, 3);
  EXPECT_NEAR(period(run_of(5, microseconds(100), 10 * kKernel)), 1000, 3);
  EXPECT_GT(step_windows(run_of(5, microseconds(100), 10 * kKernel)).front().behind.count(), 0);
}

TEST(StepWindows, WithoutBacklogNothingIsLeftOut) {
  const memwall::Run run = run_of(5, microseconds(1500), Duration{});
  EXPECT_EQ(step_windows(run).front().behind, Duration{});
  EXPECT_NEAR(period(run), (4 * 1500 + 1001) / 5.0, 3);
}

// A host that binds: what the GPU did before is done beside its first step, and hides behind it.
TEST(StepWindows, BacklogBesideAHostThatBindsChangesNothing) {
  const Duration short_kernel = microseconds(10);
  const double with = period(run_of(5, microseconds(2000), microseconds(900), short_kernel));
  const double without = period(run_of(5, microseconds(2000), Duration{}, short_kernel));
  EXPECT_NEAR(with, without, 10);
}

// What a step costs follows its time: the backlog is neither drawn nor paid.
TEST(StepWindows, BacklogCostsNoEnergyAndNoPrice) {
  const auto costs = [](Duration backlog) {
    memwall::Run run = run_of(5, microseconds(100), backlog);
    run.machine.watts = 400, run.machine.idle_watts = 100, run.machine.dollars_per_hour = 3.6, run.machine.host.watts = 0;
    return step_energy_price(run);
  };
  const StepEnergyPrice with = costs(10 * kKernel), without = costs({});
  ASSERT_TRUE(with.energy && without.energy && with.price && without.price);
  EXPECT_NEAR(*with.energy, 400 * 1e-3, 400 * 5e-6) << "a kernel of 1 ms at full power";
  EXPECT_NEAR(*with.price, 1e-3 * 1e-3, 1e-3 * 5e-6) << "a thousandth of a dollar per second";
  EXPECT_NEAR(with.busy_share, 1, 5e-3);
  EXPECT_NEAR(*with.energy / *without.energy, 1, 0.02);
}

// The longer of the two is the step's.
TEST(StepPeriods, AreTheHostsAndTheGpus) {
  const StepPeriods gpu_binds = step_periods(run_of(5, microseconds(100), 10 * kKernel));
  EXPECT_NEAR(to_microseconds(gpu_binds.host), 4 * 100 / 5.0, 3) << "the last step's host time is its launch alone";
  EXPECT_NEAR(to_microseconds(gpu_binds.gpu), 1000, 3) << "without the ten kernels of before";
  const memwall::Run slow = run_of(5, microseconds(1500), Duration{}, microseconds(10));
  EXPECT_NEAR(to_microseconds(step_periods(slow).host), 4 * 1500 / 5.0, 3);
  EXPECT_NEAR(to_microseconds(step_periods(slow).gpu), (4 * 1500 + 10) / 5.0, 3);
}

TEST(StepPeriods, HostAndGpuBesideABacklogThatIsShort) {
  // 300 us of backlog beside kernels that take 1 ms each: the GPU's period does not contain it.
  EXPECT_NEAR(to_microseconds(step_periods(run_of(2, microseconds(100), microseconds(300))).gpu), 1000, 3);
}

TEST(IdleSteps, AreLeftOutWhereOthersWork) {
  Trace t = *run_of(3, microseconds(100), Duration{}).trace;
  const OpId end = static_cast<OpId>(t.ops.size());
  Op mark;
  mark.kind = OpKind::mark;
  t.ops.push_back(mark);
  t.steps.push_back({"empty", end, end + 1});
  EXPECT_EQ(leave_out_idle_steps(t), 1u);
  ASSERT_EQ(t.steps.size(), 3u);
  EXPECT_EQ(t.steps.back().last, end + 1) << "what follows belongs to the last";
  Trace nothing;
  nothing.ops.push_back(mark);
  nothing.steps.push_back({"only", 0, 1});
  EXPECT_EQ(leave_out_idle_steps(nothing), 0u);
  EXPECT_EQ(nothing.steps.size(), 1u);
}

// What the GPU still does while the host goes through a step without work is the step's before.
TEST(IdleSteps, BetweenOthersBelongToTheStepBefore) {
  memwall::Run run = run_of(3, microseconds(100), Duration{});
  const double all = period(run);
  Trace t = *run.trace;
  t.steps[1].name = "idle";
  for (OpId id = t.steps[1].first; id < t.steps[1].last; ++id) t.ops[id].placed = runs_on_device(t.ops[id].kind);
  EXPECT_EQ(leave_out_idle_steps(t), 1u);
  ASSERT_EQ(t.steps.size(), 2u);
  EXPECT_EQ(t.steps[0].last, t.steps[1].first);
  run.trace = std::move(t);
  EXPECT_NEAR(period(run), 1.5 * all, 0.1) << "three steps' time in two";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
