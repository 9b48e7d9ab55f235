// Is the interval of a step that the host decides what the step does with all durations short, and long?
#include "study/step_bounds.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/trace/trace_builder.h"
#include "tests/support/test_machine.h"
#include "traces/run/analysis/summary.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Four kernels of 10 us, carried over with an error of 20 %, each launched `host_gap` after the call before.
Trace carried(Duration host_gap) {
  TraceBuilder builder;
  builder.trace().knowledge.timing = true;
  builder.add_thread("main");
  builder.add_stream("compute", StreamRole::compute);
  for (int i = 0; i < 4; ++i) {
    Op op;
    op.kind = OpKind::kernel;
    op.origin = Origin::transferred;
    op.error_permille = 200;
    op.host_gap = host_gap;
    op.duration = microseconds(10);
    builder.append(op);
  }
  return builder.trace();
}

memwall::Run simulated(SharedTrace trace) { return simulate_and_record(std::move(trace), test_machine(), {}); }

TEST(StepBounds, WhereTheHostDecidesOnlyTheLastKernelCounts) {
  memwall::Run run = simulated(carried(microseconds(50)));
  run.step_bounds = step_bounds(run, simulated);
  const double factor = std::exp(1.2816 * 0.2 / 1.645);
  const Duration step = summarize(run).step_time;
  EXPECT_NEAR(to_seconds(run.step_bounds.high - step), 10e-6 * (factor - 1), 1e-9);
  EXPECT_NEAR(to_seconds(step - run.step_bounds.low), 10e-6 * (1 - 1 / factor), 1e-9);
  const auto interval = summarize(run).step_interval;
  ASSERT_TRUE(interval);
  EXPECT_TRUE(interval->by_replays);
  const double replayed = std::log(to_seconds(run.step_bounds.high) / to_seconds(step));
  EXPECT_NEAR(std::log(to_seconds(interval->high) / to_seconds(step)),
              std::hypot(replayed, 1.2816 * carried_deviation()), 1e-6)
      << "with what jobs on two GPUs are off besides";
}

TEST(StepBounds, WhereThePathIsKnownThereAreNoMoreRuns) {
  const memwall::Run run = simulated(carried({}));
  const StepBounds bounds =
      step_bounds(run, [](SharedTrace) -> memwall::Run { throw std::logic_error("not asked for"); });
  EXPECT_EQ(bounds.high.count(), 0);
  EXPECT_TRUE(summarize(run).step_interval);
}

TEST(StepBounds, WithoutThemAStepThatTheHostDecidesHasNoInterval) {
  EXPECT_FALSE(summarize(simulated(carried(microseconds(1000)))).step_interval);
}

TEST(StepBounds, AnIntervalThatNothingMovesIsNone) {
  memwall::Run run = simulated(carried(microseconds(50'000)));  // 10 us of 200 ms
  run.step_bounds = step_bounds(run, simulated);
  EXPECT_GT(run.step_bounds.high.count(), 0);
  EXPECT_FALSE(summarize(run).step_interval);
}

TEST(StepBounds, OfWhatWasMeasuredThereAreNone) {
  Trace trace = carried(microseconds(50));
  for (Op& op : trace.ops) op.origin = Origin::measured;
  const memwall::Run run = simulated(std::move(trace));
  EXPECT_EQ(step_bounds(run, simulated).high.count(), 0);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
