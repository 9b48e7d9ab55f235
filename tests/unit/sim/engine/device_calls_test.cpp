// Do the allocator's calls to the device cost what the machine says: where memory is given back and obtained anew, and
// nowhere else?
#include "sim/engine/device_calls.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/engine/simulation.h"
#include "sim/trace/trace_builder.h"
#include "sim/trace/trace_check.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Duration us(std::int64_t n) { return microseconds(n); }

Machine machine_with(Bytes capacity) {
  Machine machine = test_machine();
  for (Tier& tier : machine.tiers)
    if (tier.name == "hbm") tier.capacity = capacity;
  machine.host.device_malloc = us(200);
  machine.host.device_free = us(500);
  machine.host.page_map = us(60);
  machine.host.page_unmap = us(40);
  return machine;
}

// Each step: 40 MiB (a) and 40 MiB (b), a is freed, then 60 MiB (c), which a's memory is too small for. A kernel of 1
// ms before c, and one behind it. The host's calls take no time of their own. At most 100 MiB live at once.
Trace fragmenting_steps(int steps, const char* shown_call = "") {
  TraceBuilder builder;
  builder.trace().name = "fragmenting";
  builder.trace().knowledge = {true, true, true, false, false};
  builder.trace().constants = {};
  const std::uint16_t host = builder.add_thread("main"), compute = builder.add_stream("compute", StreamRole::compute);
  const auto kernel = [&] {
    Op op;
    op.kind = OpKind::kernel;
    op.thread = host;
    op.stream = compute;
    op.duration = us(1000);
    builder.append(op);
  };
  for (int i = 0; i < steps; ++i) {
    Op mark;
    mark.thread = host;
    const OpId first = builder.append(mark);
    const auto storage = [&](Bytes bytes) { return builder.add_storage(bytes, StorageKind::activation, "hbm", ""); };
    const StorageId a = storage(MiB(40)), b = storage(MiB(40)), c = storage(MiB(60));
    builder.alloc(a, host);
    kernel();
    builder.alloc(b, host);
    builder.free(a, host);
    if (*shown_call != '\0') {
      Op shown;
      shown.kind = OpKind::host_work;
      shown.thread = host;
      shown.name = builder.trace().strings.intern(shown_call);
      builder.append(shown);
    }
    builder.alloc(c, host);
    kernel();
    builder.free(b, host);
    builder.free(c, host);
    builder.trace().steps.push_back({"step", first, static_cast<OpId>(builder.trace().ops.size())});
  }
  return std::move(builder).finish();
}

SimulationResult run(const Trace& trace, Bytes capacity, const AllocatorSettings& settings = {}) {
  EXPECT_EQ(check(trace), std::vector<std::string>{});
  SimulationOptions options;
  options.allocator_settings = settings;
  return simulate(trace, machine_with(capacity), options);
}

const TierResult& hbm(const SimulationResult& result) { return result.tiers.front(); }

TEST(DeviceCalls, ACacheThatGrowsCostsNothing) {
  const SimulationResult result = run(fragmenting_steps(3), GiB(1));
  EXPECT_EQ(hbm(result).allocator.device_mallocs, 3u);
  EXPECT_EQ(hbm(result).allocator.device_frees, 0u);
  EXPECT_EQ(hbm(result).device_calls, Duration{});
  EXPECT_EQ(result.end, us(6000));
}

// The host waits for the first kernel, frees a's segment and obtains c's: 1000 + 500 + 200, then the second kernel.
TEST(DeviceCalls, AFlushWaitsForTheDeviceAndPaysForWhatItGivesBackAndObtainsAgain) {
  const SimulationResult result = run(fragmenting_steps(1), MiB(120));
  EXPECT_EQ(hbm(result).allocator.retries, 1u);
  EXPECT_EQ(hbm(result).allocator.device_frees, 1u);
  EXPECT_EQ(hbm(result).device_calls, us(1700));
  EXPECT_EQ(result.end, us(2700));
  const auto waited = std::ranges::find(result.records, WaitReason::memory, &OpRecord::host_end_reason);
  ASSERT_NE(waited, result.records.end());
  EXPECT_TRUE(waited->host_end_waited);
  EXPECT_EQ(waited->host_start, us(0));
  EXPECT_EQ(waited->host_end, us(1700));
}

// The same step, ever less memory: no slower until the cache no longer fits, then once per flush.
TEST(DeviceCalls, AStepNearCapacityIsSlowerByItsFlushes) {
  const Trace trace = fragmenting_steps(1);
  std::uint64_t retries = 0;
  Time end = us(2000);
  for (const Bytes capacity : {MiB(400), MiB(200), MiB(140), MiB(139), MiB(120), MiB(100)}) {
    const SimulationResult result = run(trace, capacity);
    EXPECT_TRUE(result.fits) << capacity;
    EXPECT_GE(hbm(result).allocator.retries, retries) << capacity;
    EXPECT_GE(result.end, end) << capacity;
    EXPECT_EQ(result.end > us(2000), hbm(result).allocator.retries > 0) << capacity;
    retries = hbm(result).allocator.retries;
    end = result.end;
  }
  EXPECT_EQ(retries, 1u);
}

// The second step cuts b out of the segment that the first one's c had, and flushes once more. Then there are two of
// 60 MiB, and later steps find all that they need.
TEST(DeviceCalls, EachStepPaysForItsOwnFlushesAndASteadyOneForNone) {
  const SimulationResult result = run(fragmenting_steps(4), MiB(120));
  EXPECT_EQ(hbm(result).allocator.retries, 2u);
  EXPECT_EQ(result.end, us(2 * 2700 + 2 * 2000));
  EXPECT_EQ(hbm(result).device_calls, us(1700 + 2700)) << "the second waits for the kernel of the first step, too";
}

// From there on memory is taken as unlimited, so that emptying the cache for nothing says nothing of the step.
TEST(DeviceCalls, ARefusedRequestCostsNothing) {
  const SimulationResult result = run(fragmenting_steps(1), MiB(99));
  EXPECT_FALSE(result.fits);
  EXPECT_EQ(hbm(result).allocator.device_frees, 1u);
  EXPECT_EQ(result.end, us(2000));
}

TEST(DeviceCalls, PagesOfExpandableSegmentsArePaidOneByOne) {
  AllocatorSettings settings;
  settings.expandable_segments = true;
  const SimulationResult roomy = run(fragmenting_steps(1), GiB(1), settings);
  EXPECT_EQ(hbm(roomy).allocator.pages_mapped, 7u);
  EXPECT_EQ(roomy.end, us(2000));
  const SimulationResult result = run(fragmenting_steps(1), MiB(120), settings);
  EXPECT_EQ(hbm(result).allocator.pages_unmapped, 2u);
  EXPECT_EQ(hbm(result).device_calls, us(1000 + 2 * 40 + 2 * 60)) << "of c's three pages one is new";
}

// What the capture shows has its captured time in the trace.
TEST(DeviceCalls, CallsThatTheTraceShowsAreNotChargedAgain) {
  const auto charged = [](const char* shown) { return hbm(run(fragmenting_steps(1, shown), MiB(120))).device_calls; };
  EXPECT_EQ(charged("cudaFree"), us(200));
  EXPECT_EQ(charged("cudaMalloc"), us(1000 + 500));
  EXPECT_EQ(charged("cudaLaunchKernel"), us(1000 + 500 + 200));
}

// What one rank has given back, another does not obtain again.
TEST(DeviceCalls, EachRankObtainsWhatItsOwnAllocatorGaveBack) {
  Trace trace;
  trace.threads = {{"rank 0", 0}, {"rank 1", 1}};
  const Machine machine = machine_with(MiB(100));
  DeviceCalls calls(trace, machine.host, false, true);
  AllocatorEvents none, freed, obtained;
  freed.device_frees = 1;
  obtained.device_mallocs = 1;
  EXPECT_EQ(calls.charge(trace.threads[0], none, freed).calls, us(500));
  EXPECT_EQ(calls.charge(trace.threads[1], none, obtained).calls, us(0)) << "its cache grows for the first time";
  EXPECT_EQ(calls.charge(trace.threads[0], none, obtained).calls, us(200));
}

TEST(DeviceCalls, AnAllocatorWithoutACacheCostsNothing) {
  SimulationOptions options;
  options.allocator = "ideal";
  EXPECT_EQ(simulate(fragmenting_steps(2), machine_with(MiB(120)), options).end, us(4000));
  options.allocator = "arena";
  EXPECT_EQ(simulate(fragmenting_steps(2), machine_with(MiB(120)), options).end, us(4000));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
