// Does the forecast beat the two naive ones on steps that it has not seen?
//
// Every step k of the second half of a series is forecast from the steps before it alone; the peak that came is then
// compared with three forecasts: ours, the last value (the last sample before the step) and seasonal-naive (the peak
// of the step before). Series: the shipped step of a GPT repeated through the simulator with what makes training
// memory change; and real captures with several steps. The table is printed; docs/forecast.md holds it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "models/hw/machine_file.h"
#include "models/workload/forecast/memory_forecast.h"
#include "models/workload/forecast/recorded_series.h"
#include "models/workload/import/kineto/kineto_reader.h"
#include "models/workload/import/snapshot/snapshot_reader.h"
#include "models/workload/import/timed/timed_import.h"
#include "models/workload/memory/allocations.h"
#include "models/workload/memory/start_state.h"
#include "sim/trace/repeat.h"
#include "tests/support/sample.h"
#include "tests/support/shared_data.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Errors {
  double forecast = 0, last_value = 0, seasonal_naive = 0;
  int steps = 0, covered = 0;
};

Errors errors_on(const MemorySeries& series, std::size_t first_unseen) {
  Errors e;
  const std::size_t p = series.period, n = series.bytes.size() / p;
  const auto at = [&](std::size_t i) { return series.bytes.begin() + static_cast<std::ptrdiff_t>(i); };
  for (std::size_t k = first_unseen; k < n; ++k) {
    const MemorySeries seen{.bytes = {series.bytes.begin(), at(k * p)}, .period = p};
    const StepForecast f = forecast_memory(seen, 1, 0).steps.front();
    const double peak = *std::max_element(at(k * p), at((k + 1) * p));
    e.forecast += std::abs(static_cast<double>(f.peak) - peak);
    e.last_value += std::abs(seen.bytes.back() - peak);
    e.seasonal_naive += std::abs(*std::max_element(at((k - 1) * p), at(k * p)) - peak);
    // To the byte: peaks are whole.
    e.covered += static_cast<double>(f.low) <= peak + 1 && peak - 1 <= static_cast<double>(f.high);
    ++e.steps;
  }
  e.forecast /= e.steps;
  e.last_value /= e.steps;
  e.seasonal_naive /= e.steps;
  return e;
}

Errors report(const char* name, const MemorySeries& series, std::size_t first_unseen) {
  const Errors e = errors_on(series, first_unseen);
  fmt::print("| {} | {} | {:.3f} | {:.3f} | {:.3f} | {} of {} |\n", name, e.steps, e.forecast / 1e6,
             e.seasonal_naive / 1e6, e.last_value / 1e6, e.covered, e.steps);
  return e;
}

// The memory of hbm in a run, by steps.
MemorySeries series_of(const Run& run) {
  const auto& points = run.memory.at(static_cast<std::size_t>(run.machine.tier("hbm")));
  std::vector<double> bytes;
  std::vector<std::size_t> boundaries;
  for (const auto& p : points) bytes.push_back(static_cast<double>(p.allocated));
  for (const StepWindow& w : step_windows(run)) {
    const auto first = std::find_if(points.begin(), points.end(), [&](const auto& p) { return p.time >= w.begin; });
    boundaries.push_back(static_cast<std::size_t>(first - points.begin()));
  }
  boundaries.push_back(points.size());
  return resample_steps(bytes, boundaries, kStepSamples);
}

// The sample's steps, `rounds` times two, each changed before it runs.
MemorySeries simulated(std::uint32_t rounds, const std::function<void(Trace&, std::size_t step, Op&)>& change) {
  Trace trace = repeated(sample_gpt_124m(), rounds);
  for (std::size_t s = 0; s < trace.steps.size(); ++s)
    for (OpId i = trace.steps[s].first; i < trace.steps[s].last; ++i) change(trace, s, trace.ops[i]);
  return series_of(simulate_and_record(std::move(trace), load_machine("a100-sxm-40gb"), {}));
}

// A number in [0, 1) that belongs to (a, b).
double drawn(std::uint64_t a, std::uint64_t b) {
  std::mt19937_64 bits(a * 1000003 + b);
  return static_cast<double>(bits() >> 11) * 0x1p-53;
}

void scale_made(Trace& trace, Op& op, double factor) {
  if (op.kind != OpKind::alloc) return;
  Bytes& bytes = trace.storages[op.target].bytes;
  bytes = std::max<Bytes>(1, std::llround(static_cast<double>(bytes) * factor));
}

constexpr std::uint32_t kRounds = 15;  // 30 steps
constexpr std::size_t kFirstUnseen = 15;

TEST(MemoryForecastOracle, BeatsTheNaiveOnesOnSimulatedSteps) {
  fmt::print("| series | steps scored | forecast, MB | seasonal-naive, MB | last value, MB | covered |\n");
  fmt::print("|---|---|---|---|---|---|\n");
  const Errors plain = report("the step, unchanged", simulated(kRounds, [](Trace&, std::size_t, Op&) {}), kFirstUnseen);
  EXPECT_EQ(plain.forecast, 0) << "a tie: seasonal-naive is exact too";
  EXPECT_EQ(plain.seasonal_naive, 0);
  EXPECT_GT(plain.last_value, 1e6);

  // In each step the first free of an activation of backward is forgotten.
  std::size_t leaking = kNoOp;
  const MemorySeries leaks = simulated(kRounds, [&](Trace& trace, std::size_t step, Op& op) {
    if (op.kind != OpKind::free || step == leaking || op.phase != Phase::backward) return;
    if (trace.storages[op.target].bytes < (1 << 20)) return;
    leaking = step;
    op = Op{.kind = OpKind::mark, .phase = op.phase, .thread = op.thread};
  });
  const Errors leak = report("a storage leaks in every step", leaks, kFirstUnseen);
  EXPECT_LT(leak.forecast, 0.5 * leak.seasonal_naive);
  EXPECT_LT(leak.forecast, leak.last_value);

  const Errors lengths =
      report("sequence length varies, 0.5 to 1",
             simulated(kRounds,
                       [](Trace& trace, std::size_t step, Op& op) {
                         if (op.kind == OpKind::alloc && trace.storages[op.target].kind == StorageKind::activation)
                           scale_made(trace, op, 0.5 + 0.5 * drawn(1, step));
                       }),
             kFirstUnseen);
  EXPECT_LT(lengths.forecast, lengths.seasonal_naive);
  EXPECT_LT(lengths.forecast, lengths.last_value);

  const Errors noisy =
      report("every allocation varies by 5 %, every step by 2 %",
             simulated(kRounds,
                       [](Trace& trace, std::size_t step, Op& op) {
                         scale_made(trace, op, (0.975 + 0.05 * drawn(2, op.target)) * (0.99 + 0.02 * drawn(3, step)));
                       }),
             kFirstUnseen);
  EXPECT_LT(noisy.forecast, noisy.seasonal_naive);
  EXPECT_LT(noisy.forecast, noisy.last_value);

  leaking = kNoOp;
  const Errors both =
      report("lengths vary by 5 % and a storage leaks",
             simulated(kRounds,
                       [&](Trace& trace, std::size_t step, Op& op) {
                         if (op.kind == OpKind::alloc && trace.storages[op.target].kind == StorageKind::activation)
                           scale_made(trace, op, 0.95 + 0.05 * drawn(4, step));
                         if (op.kind != OpKind::free || step == leaking || op.phase != Phase::backward ||
                             trace.storages[op.target].bytes < (1 << 20))
                           return;
                         leaking = step;
                         op = Op{.kind = OpKind::mark, .phase = op.phase, .thread = op.thread};
                       }),
             kFirstUnseen);
  EXPECT_LT(both.forecast, both.seasonal_naive);
  EXPECT_LT(both.forecast, both.last_value);

  const MemorySeries warm = simulated(kRounds, [](Trace& trace, std::size_t step, Op& op) {
    if (step < 2 && op.kind == OpKind::alloc) scale_made(trace, op, 1.5);
  });
  const Errors warm_up = report("a warm-up of two steps, then unchanged", warm, 3);
  EXPECT_LE(warm_up.forecast, warm_up.seasonal_naive);
  EXPECT_LT(warm_up.forecast, warm_up.last_value);
}

TEST(MemoryForecastOracle, TheRealSnapshotsThirdStep) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "the shared captures are not there";
  const MemoryRecording recording = read_snapshot(*data / "traces/snapshots/lm_small_ctx100_train_from_empty.pickle");
  const DeviceRecording& device = recording.devices.at(0);
  const AllocationTable table = tabulate_allocations(recording, device, find_start_state(device, recording.settings));
  ASSERT_EQ(table.steps.size(), 3u);
  std::vector<std::size_t> boundaries;
  for (const RecordedStep& step : table.steps) boundaries.push_back(step.begin);
  boundaries.push_back(table.steps.back().end);
  const Errors e = report("snapshot, small LM from empty (real)",
                          resample_steps(live_bytes_of(device), boundaries, kStepSamples), 2);
  EXPECT_EQ(e.steps, 1);
  EXPECT_LE(e.forecast, e.seasonal_naive);
  EXPECT_LT(e.forecast, e.last_value);
}

TEST(MemoryForecastOracle, RealCapturesOfSeveralSteps) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "the shared captures are not there";
  const std::pair<const char*, const char*> captures[] = {{"resnet50_v100_bs32_2021.json.gz", "v100-sxm2-32gb"},
                                                          {"recommender_2xv100.json.gz", "v100-sxm2-16gb"}};
  for (const auto& [file, machine] : captures) {
    Trace trace = import_timed_capture(read_kineto(*data / "traces/kineto" / file)).trace;
    const auto run = simulate_and_record(std::move(trace), load_machine(machine), {});
    const MemorySeries series = series_of(run);
    const std::size_t steps = series.bytes.size() / series.period;
    if (steps < 3 || run.memory.at(0).size() < 100) {
      fmt::print("{}: {} steps, {} points of memory: nothing to forecast\n", file, steps, run.memory.at(0).size());
      continue;
    }
    const Errors e = report(fmt::format("{} (real)", file).c_str(), series, 2);
    EXPECT_LE(e.forecast, e.seasonal_naive) << file;
    EXPECT_LT(e.forecast, e.last_value) << file;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
