// Which storages make the peak, of what kind and phase, and does the recorder see what the engine saw?
#include "traces/run/analysis/peak.h"

#include "sim/trace/trace_builder.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Weight 100 (from before), activation 40 (forward), workspace 60 made and dropped at once, gradient 30 (backward).
Trace small_step() {
  TraceBuilder b;
  b.add_thread("main");
  b.add_stream("compute", StreamRole::compute);
  Trace& t = b.trace();
  t.knowledge = {true, true, true, true, true};
  const StorageId weight = b.add_storage(100, StorageKind::parameter, "hbm", "weight", true);
  const StorageId activation = b.add_storage(40, StorageKind::activation, "hbm", "");
  const StorageId workspace = b.add_storage(60, StorageKind::workspace, "hbm", "");
  const StorageId gradient = b.add_storage(30, StorageKind::gradient, "hbm", "weight.grad");
  const auto kernel = [&](const char* name, Phase phase, std::vector<Use> uses) {
    Op op;
    op.kind = OpKind::kernel;
    op.name = t.strings.intern(name);
    op.operator_name = t.strings.intern(std::string("aten::") + name);
    op.module = t.strings.intern("layer");
    op.phase = phase;
    op.duration = microseconds(1);
    b.append(op, uses);
  };
  b.alloc(activation, 0);
  kernel("linear", Phase::forward, {{weight, TraceBuilder::kLatest, Access::read}, {activation, 0, Access::write}});
  b.alloc(workspace, 0);
  kernel("split", Phase::forward, {{workspace, 0, Access::write}});
  b.free(workspace, 0);
  b.alloc(gradient, 0);
  kernel("linear_backward", Phase::backward,
         {{activation, TraceBuilder::kLatest, Access::read}, {gradient, 0, Access::write}});
  b.free(activation, 0);
  return std::move(b).finish();
}

memwall::Run recorded(Trace trace, Bytes untracked = 0) {
  trace.untracked_bytes = untracked;
  RunSettings settings;
  settings.allocator = "ideal";
  return simulate_and_record(std::move(trace), test_machine(), settings);
}

// All allocations fall on the instant 0: only their order tells what stands at the peak.
TEST(Peak, FindsTheStoragesWithinOneInstant) {
  const Peak peak = find_peak(recorded(small_step()), 0);
  EXPECT_EQ(peak.allocated, 200);
  EXPECT_EQ(peak.requested, 200);
  EXPECT_EQ(peak.storages, 3u);
  ASSERT_EQ(peak.largest.size(), 3u);
  EXPECT_EQ(peak.largest[0].label, "weight");
  EXPECT_EQ(peak.largest[0].phase, Phase::unknown);
  EXPECT_EQ(peak.largest[1].label, "aten::split");
  EXPECT_EQ(peak.largest[1].module, "layer");
  EXPECT_EQ(peak.largest[2].bytes, 40);
  EXPECT_EQ(peak.by_kind[static_cast<int>(StorageKind::parameter)], 100);
  EXPECT_EQ(peak.by_kind[static_cast<int>(StorageKind::gradient)], 0);
  EXPECT_EQ(peak.by_phase[static_cast<int>(Phase::forward)], 100);
  EXPECT_EQ(peak.by_phase[static_cast<int>(Phase::unknown)], 100);
}

TEST(Peak, CountsUntrackedBytesAsUnknown) {
  const Peak peak = find_peak(recorded(small_step(), 1000), 0);
  EXPECT_EQ(peak.allocated, 1200);
  EXPECT_EQ(peak.by_kind[static_cast<int>(StorageKind::unknown)], 1000);
  EXPECT_EQ(peak.by_phase[static_cast<int>(Phase::unknown)], 1100);
  EXPECT_EQ(peak.storages, 3u);
}

TEST(Peak, KeepsOnlyTheLargest) {
  const Peak peak = find_peak(recorded(small_step()), 0, 1);
  ASSERT_EQ(peak.largest.size(), 1u);
  EXPECT_EQ(peak.largest[0].bytes, 100);
  EXPECT_EQ(peak.storages, 3u);
}

TEST(Peak, OfAnUnusedTierIsNothing) {
  const Peak peak = find_peak(recorded(small_step()), 2);
  EXPECT_EQ(peak.allocated, 0);
  EXPECT_TRUE(peak.largest.empty());
}

TEST(Peak, AgreesWithTheEngineAboutATrainingStep) {
  GptShape shape;
  shape.host_gap = nanoseconds(3);
  const memwall::Run run = simulate_and_record(gpt_step(shape), test_machine(), {});
  const Peak peak = find_peak(run, 0);
  Bytes requested = 0;
  for (const std::uint32_t i : run.at_peak[0]) requested += run.trace->storages[run.residency[i].storage].bytes;
  EXPECT_EQ(requested, peak.requested);
  std::vector<StorageId> largest;
  for (const PeakStorage& storage : peak.largest) largest.push_back(storage.storage);
  EXPECT_EQ(largest, run.result.tiers[0].largest_at_peak);
}

TEST(Recorder, FollowsMemoryToTheEnd) {
  const memwall::Run run = recorded(small_step());
  ASSERT_FALSE(run.memory[0].empty());
  EXPECT_EQ(run.memory[0].back().allocated, 130);
  Bytes highest = 0;
  for (const MemoryPoint& point : run.memory[0]) highest = std::max(highest, point.allocated);
  EXPECT_EQ(highest, 200);
  const std::vector<KindPoint> kinds = memory_by_kind(run, 0);
  ASSERT_EQ(kinds.size(), 1u);  // everything happens at 0 on the host
  EXPECT_EQ(kinds[0].by_kind[static_cast<int>(StorageKind::gradient)], 30);
  EXPECT_EQ(kinds[0].by_kind[static_cast<int>(StorageKind::activation)], 0);
}

TEST(Recorder, EndsEveryResidencyWithTheRun) {
  const memwall::Run run = recorded(small_step());
  ASSERT_EQ(run.residency.size(), 4u);
  for (const Residency& residency : run.residency) EXPECT_LE(residency.end, run.result.end);
  EXPECT_EQ(run.residency[0].end, run.result.end);  // the weight is never freed
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
