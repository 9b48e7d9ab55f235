// Captures of other profilers and simulators among the real ones: what they hold, by an independent count, and whether
// the trace replays as the file says it ran.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/hw/machine_file.h"
#include "models/workload/import/bytes/file_text.h"
#include "models/workload/import/cupti/nsys_import.h"
#include "models/workload/import/snapshot/snapshot_step.h"
#include "models/workload/import/tables/memory_timeline.h"
#include "models/workload/import/tables/triosim_import.h"
#include "sim/engine/simulation.h"
#include "sim/trace/scale.h"
#include "sim/trace/trace_check.h"
#include "tests/support/shared_data.h"
#include "tests/support/snapshots.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class OtherFormats : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto data = shared_data();
    if (!data) GTEST_SKIP() << "the folder of captures is absent; set MEMWALL_SHARED";
    traces_ = *data / "traces";
  }
  static SimulationResult replay(const Trace& trace, const char* machine, const char* allocator = "ideal") {
    SimulationOptions options;
    options.allocator = allocator;
    return simulate(trace, load_machine(machine), options);
  }
  static double percent(Duration now, Duration before) { return 100 * (to_seconds(now) / to_seconds(before) - 1); }

  std::filesystem::path traces_;
};

// One training step of a language model on an A100. Counts and phases by SQL: kernels whose launch lies in the range.
TEST_F(OtherFormats, NsightSystemsStep) {
  const CuptiCapture capture = read_nsys(traces_ / "nsys" / "lm_small_train_a100.sqlite");
  const ImportedTrace imported = import_cupti_capture(capture);
  EXPECT_EQ(check(imported.trace), std::vector<std::string>());
  EXPECT_EQ(imported.summary.trace_kernels, 3655u);
  EXPECT_EQ(imported.summary.trace_copies, 25u);
  EXPECT_EQ(imported.summary.trace_memsets, 121u);
  std::map<Phase, int> kernels;
  for (const Op& op : imported.trace.ops) kernels[op.phase] += op.kind == OpKind::kernel;
  EXPECT_EQ(kernels[Phase::forward], 641);
  EXPECT_EQ(kernels[Phase::backward], 1238);
  EXPECT_EQ(kernels[Phase::optimizer], 1776);
  const SimulationResult result = replay(imported.trace, "a100-sxm-40gb");
  const double total = percent(result.end, imported.captured.total);
  const double span = percent(result.gpu_span, imported.captured.gpu_span);
  fmt::print("total {:.3f} ms ({:+.3f} %), GPU span {:+.3f} %\n", to_seconds(result.end) * 1e3, total, span);
  EXPECT_LE(std::fabs(total), 0.5);
  EXPECT_LE(std::fabs(span), 0.5);
  // Under emit_nvtx the host is what takes so long: the device works 148 ms of 236, and 1.1 times as much still hides
  // behind the host. Twice as much does not: then the step takes the device's work and little else.
  const auto with = [&](double device, double host) {
    ScaleFactors factors;
    factors.kernels = factors.copies = device;
    factors.host = host;
    const Time end = replay(scaled(imported.trace, factors), "a100-sxm-40gb").end;
    fmt::print("GPU durations x {}, host x {}: total {:+.3f} %\n", device, host, percent(end, result.end));
    return end;
  };
  EXPECT_NEAR(percent(with(1.1, 1), result.end), 0.035, 0.1);
  EXPECT_NEAR(percent(with(1, 1.1), result.end), 10, 0.5);
  Duration busy{};
  for (const Op& op : imported.trace.ops) busy += op.duration;
  EXPECT_GT(with(2, 1), 2 * busy);
  EXPECT_LT(with(2, 1), 2 * busy + result.end / 20);
  std::size_t with_waves = 0;
  for (const Op& op : imported.trace.ops) with_waves += op.kind == OpKind::kernel && op.waves > 0;
  EXPECT_EQ(with_waves, 3655u);
}

TEST_F(OtherFormats, NsightSystemsStepsByName) {
  ImportSettings settings;
  settings.step_range = "profile";
  const ImportedStep step = import_nsys(traces_ / "nsys" / "lm_small_train_a100.sqlite", settings);
  ASSERT_EQ(step.trace.steps.size(), 1u);
  EXPECT_EQ(step.trace.steps[0].name, "profile");
  EXPECT_EQ(step.gpu, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(step.gpu_memory, 42404806656);
}

// ResNet-50, batch 128. 4.09 billion multiplications and additions per image forward, twice that backward without the
// gradient of the image (He et al. 2016 give 3.8 billion of the convolutions at a slightly smaller network).
TEST_F(OtherFormats, TrioSimStep) {
  const Trace t = import_triosim(traces_ / "triosim" / "resnet50_h100_bs128" / "trace.csv").trace;
  EXPECT_EQ(check(t), std::vector<std::string>());
  std::map<Phase, int> ops;
  std::map<Phase, double> flops;
  for (const Op& op : t.ops) {
    ops[op.phase] += op.kind == OpKind::kernel;
    flops[op.phase] += op.flops;
  }
  EXPECT_EQ(ops[Phase::forward], 229);
  EXPECT_EQ(ops[Phase::backward], 160);
  EXPECT_EQ(ops[Phase::optimizer], 7);
  EXPECT_NEAR(flops[Phase::forward] / 128, 2 * 4.09e9, 0.01e9);
  const double first = 2.0 * 64 * 3 * 49 * 112 * 112;  // whose input is the image
  EXPECT_NEAR(flops[Phase::backward] / 128, 2 * flops[Phase::forward] / 128 - first, 1e6);
  EXPECT_EQ(t.samples_per_step, 128);
  Bytes parameters = 0;
  std::map<StorageKind, int> storages;
  for (const Storage& s : t.storages) {
    ++storages[s.kind];
    if (s.kind == StorageKind::parameter) parameters += s.bytes;
  }
  EXPECT_EQ(storages[StorageKind::gradient], 161);
  EXPECT_EQ(storages[StorageKind::optimizer_state], 322);
  // 25,557,032 parameters, 53,120 running statistics, 53 counters of 8 bytes.
  EXPECT_EQ(parameters, 4 * (25557032 + 53120) + 53 * 8);
  const SimulationResult result = replay(t, "h100-sxm-80gb");
  EXPECT_EQ(result.end, microseconds(83309));  // the sum of Operator_cudatime
}

TEST_F(OtherFormats, MemoryTimelineSums) {
  const auto path = traces_ / "kineto" / "memory_timeline.raw.gz";
  const ImportedStep step = import_memory_timeline(path);
  EXPECT_EQ(check(step.trace), std::vector<std::string>());
  simdjson::dom::parser parser;
  const std::string text = read_file_text(path);
  std::int64_t held = 0, preexisting = 0, created = 0, destroyed = 0;
  std::vector<std::int64_t> after;  // every CREATE and DESTROY
  for (const simdjson::dom::element row : parser.parse(text).get_array()) {
    const std::int64_t action = row.at(1), bytes = row.at(2);
    held += bytes;
    preexisting += action == 1;
    created += action == 2;
    destroyed += action == 4;
    if (action == 2 || action == 4) after.push_back(held);
  }
  EXPECT_EQ(preexisting, 645);
  EXPECT_EQ(created, 3345);
  EXPECT_EQ(destroyed, 3345);
  std::int64_t sum = 0;
  for (const Storage& s : step.trace.storages) sum += s.preexisting ? s.bytes : 0;
  std::size_t at = 0;
  for (const Op& op : step.trace.ops) {
    if (op.kind != OpKind::alloc && op.kind != OpKind::free) continue;
    sum += (op.kind == OpKind::alloc ? 1 : -1) * step.trace.storages[op.target].bytes;
    ASSERT_LT(at, after.size());
    ASSERT_EQ(sum, after[at]) << at;
    ++at;
  }
  EXPECT_EQ(at, after.size());
  EXPECT_TRUE(replay(step.trace, "v100-sxm2-32gb", "pytorch").fits);
}

// The peak under the allocator `pytorch`, with the recording's settings, beside that of the replay which is exact to
// the byte.
TEST_F(OtherFormats, SnapshotsPeak) {
  for (const char* name : {kFromEmpty, kMedium128, kMedium256, kExpandable}) {
    SCOPED_TRACE(name);
    const ImportedStep step = import_snapshot(traces_ / "snapshots" / name);
    ASSERT_EQ(check(step.trace), std::vector<std::string>());
    const auto recording = shared_snapshot(name);
    ASSERT_TRUE(recording);
    const RecordingReplay exact = replay_found(*recording, recording->devices.front());
    SimulationOptions options;
    options.allocator_settings = recording->settings;
    const SimulationResult result = simulate(step.trace, load_machine("h100-sxm-80gb"), options);
    const TierResult& hbm = result.tiers.front();
    fmt::print("{:<42} allocated {} and {}, requested {} and {}, reserved {} and {}\n", name, hbm.peak_allocated,
               exact.peak.allocated_bytes, hbm.peak_usage.requested, exact.peak.requested_bytes, hbm.peak_reserved,
               exact.peak_reserved);
    EXPECT_EQ(hbm.peak_allocated, exact.peak.allocated_bytes);
    EXPECT_EQ(hbm.peak_usage.requested, exact.peak.requested_bytes);
    // Blocks from before the recording are placed anew; from empty there are none.
    EXPECT_NEAR(static_cast<double>(hbm.peak_reserved), static_cast<double>(exact.peak_reserved),
                name == kFromEmpty ? 0 : 0.01 * static_cast<double>(exact.peak_reserved));
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
