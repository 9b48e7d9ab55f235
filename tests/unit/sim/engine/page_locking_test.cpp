// Does page-locking cost what the machine says: in the first step where there is a pool, in every step where there is
// none, and by the bytes that the pool rounds up to?
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/engine/device_calls.h"
#include "sim/engine/simulation.h"
#include "sim/memory/allocator.h"
#include "sim/trace/trace_builder.h"
#include "sim/trace/trace_check.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Duration us(std::int64_t n) { return microseconds(n); }

Machine machine_that_pins() {
  Machine machine = test_machine();
  machine.host.pinning = static_cast<double>(GiB(1));
  machine.host.pinned_allocation = us(100);
  machine.host.device_free = us(40);
  return machine;
}

// Each step: a kernel of 1 ms, then page-locked memory of so many bytes, one after the other, all freed at its end. The
// host's calls take no time of their own.
Trace pinning_steps(int steps, const std::vector<Bytes>& sizes, bool with_kernel = false) {
  TraceBuilder builder;
  builder.trace().name = "pinning";
  builder.trace().knowledge = {true, true, true, false, false};
  builder.trace().constants = {};
  const std::uint16_t host = builder.add_thread("main"), compute = builder.add_stream("compute", StreamRole::compute);
  for (int i = 0; i < steps; ++i) {
    Op mark;
    mark.thread = host;
    const OpId first = builder.append(mark);
    if (with_kernel) {
      Op op;
      op.kind = OpKind::kernel;
      op.thread = host;
      op.stream = compute;
      op.duration = us(1000);
      builder.append(op);
    }
    std::vector<StorageId> storages;
    for (const Bytes bytes : sizes) {
      storages.push_back(builder.add_storage(bytes, StorageKind::activation, "host", ""));
      builder.trace().storages.back().pinned = true;
      builder.alloc(storages.back(), host);
    }
    for (const StorageId storage : storages) builder.free(storage, host);
    builder.trace().steps.push_back({"step", first, static_cast<OpId>(builder.trace().ops.size())});
  }
  return std::move(builder).finish();
}

SimulationResult run(const Trace& trace, bool first_step, bool pool = true) {
  EXPECT_EQ(check(trace), std::vector<std::string>{});
  SimulationOptions options;
  options.first_step = first_step;
  options.allocator_settings.pinned_pool = pool;
  return simulate(trace, machine_that_pins(), options);
}

const TierResult& host(const SimulationResult& result) { return result.tiers[1]; }

TEST(PageLocking, AStepThatIsOneOfManyFindsItsMemoryInThePool) {
  const SimulationResult result = run(pinning_steps(1, {MiB(64), MiB(64)}), false);
  EXPECT_EQ(result.end, Duration{});
  EXPECT_EQ(host(result).allocator.device_mallocs, 2u);
}

TEST(PageLocking, TheFirstStepPaysForEachCallAndForItsBytesAsTheyAreRoundedUp) {
  // 65 MiB become 128, which take 1/8 s; 64 MiB 1/16 s.
  const SimulationResult result = run(pinning_steps(1, {MiB(65), MiB(64)}), true);
  EXPECT_EQ(result.end, us(125'000) + us(62'500) + 2 * us(100));
  EXPECT_EQ(host(result).peak_reserved, MiB(192));
  EXPECT_EQ(host(result).device_calls, result.end);
}

TEST(PageLocking, TheSecondOfTwoStepsPaysNothing) {
  const SimulationResult result = run(pinning_steps(2, {MiB(64)}), true);
  ASSERT_EQ(result.steps.size(), 2u);
  EXPECT_EQ(result.steps[0].step_time, us(62'600));
  EXPECT_EQ(result.steps[1].step_time, Duration{});
}

TEST(PageLocking, WithoutAPoolEveryStepPaysForWholePagesAndForGivingThemBack) {
  // 65 MiB less 1 byte take as many pages as 65 MiB.
  const Trace trace = pinning_steps(3, {MiB(65) - 1});
  for (const bool first_step : {false, true}) {
    const SimulationResult result = run(trace, first_step, false);
    const Duration each = from_seconds(65.0 / 1024) + us(100) + us(40);
    ASSERT_EQ(result.steps.size(), 3u);
    for (const StepResult& step : result.steps) EXPECT_EQ(step.step_time, each) << first_step;
    EXPECT_EQ(host(result).peak_reserved, MiB(65));
    EXPECT_EQ(host(result).allocator.device_mallocs, 3u);
    EXPECT_EQ(host(result).allocator.device_frees, 3u);
  }
}

TEST(PageLocking, ItWaitsForTheDeviceFirst) {
  const SimulationResult result = run(pinning_steps(1, {MiB(64)}, true), true);
  EXPECT_EQ(result.end, us(1000) + us(62'600));
}

TEST(PageLocking, WhatLivesBeforeTheStepCostsItNothing) {
  Trace trace = pinning_steps(1, {MiB(64)});
  Storage before = trace.storages.back();
  before.preexisting = true;
  before.bytes = MiB(256);
  trace.storages.push_back(before);
  const SimulationResult result = run(trace, true);
  EXPECT_EQ(result.end, us(62'600));
  EXPECT_EQ(host(result).peak_reserved, MiB(320));
}

TEST(PageLocking, PageableMemoryCostsNothing) {
  Trace trace = pinning_steps(1, {MiB(64)});
  for (Storage& storage : trace.storages) storage.pinned = false;
  EXPECT_EQ(run(trace, true).end, Duration{});
  EXPECT_EQ(run(trace, true, false).end, Duration{});
}

TEST(UnpooledPinnedAllocator, TakesWholePagesAndGivesThemBack) {
  const auto allocator = make_unpooled_pinned_allocator(MiB(1));
  const auto a = allocator->allocate(1, 0), b = allocator->allocate(5000, 0);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(allocator->usage().reserved, 3 * 4096);
  EXPECT_EQ(allocator->usage().requested, 5001);
  EXPECT_FALSE(allocator->allocate(MiB(1) - 2 * 4096, 0));
  allocator->free(*b);
  EXPECT_EQ(allocator->usage().reserved, 4096);
  allocator->free(*a);
  EXPECT_EQ(allocator->usage().allocated, 0);
  EXPECT_EQ(allocator->usage().requested, 0);
  const auto nothing = allocator->allocate(0, 0);
  ASSERT_TRUE(nothing);
  allocator->free(*nothing);
  EXPECT_EQ(allocator->events().device_mallocs, 2u);
  EXPECT_EQ(allocator->events().device_frees, 2u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
