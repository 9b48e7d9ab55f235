// Does the memory of a storage that another stream uses (record_stream) come back only once that stream is done with
// it?
#include <gtest/gtest.h>

#include "sim/engine/simulation.h"
#include "sim/trace/trace_builder.h"
#include "sim/trace/trace_check.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kSize = 1'000'000;

// A storage of the side stream's pool is used by a compute kernel of 10 us and freed at once, late or not. Another one
// is allocated right behind, or, with `waits`, once the host has waited for the kernel.
Trace program(bool late, bool waits) {
  TraceBuilder b;
  b.trace().knowledge = {true, true, true, false, false};
  b.add_thread("main");
  const std::uint16_t compute = b.add_stream("compute", StreamRole::compute);
  const std::uint16_t side = b.add_stream("side", StreamRole::communication);
  const StorageId first = b.add_storage(kSize, StorageKind::workspace, "hbm", "first");
  const StorageId second = b.add_storage(kSize, StorageKind::workspace, "hbm", "second");
  for (const StorageId id : {first, second}) b.trace().storages[id].stream = side;
  b.alloc(first, 0);
  Op kernel;
  kernel.kind = OpKind::kernel;
  kernel.stream = compute;
  kernel.duration = microseconds(10);
  const Use use{first, 0, Access::write};
  b.append(kernel, {&use, 1});
  Op free;
  free.kind = OpKind::free;
  free.target = first;
  free.stream = late ? compute : side;
  free.wait_for = late ? WaitFor::stream : WaitFor::nothing;
  b.append(free);
  if (waits) {
    Op synchronize;
    synchronize.kind = OpKind::synchronize;
    synchronize.wait_for = WaitFor::device;
    b.append(synchronize);
  }
  b.alloc(second, 0);
  b.free(second, 0);
  return std::move(b).finish();
}

Bytes peak(const Trace& trace, const char* allocator) {
  EXPECT_EQ(check(trace), std::vector<std::string>{});
  SimulationOptions options;
  options.allocator = allocator;
  return simulate(trace, test_machine(), options).tiers[0].peak_allocated;
}

TEST(LateFree, MemoryComesBackWhenTheStreamIsDone) {
  for (const char* allocator : {"ideal", "pytorch"}) {
    const Bytes once = peak(program(false, false), allocator);
    EXPECT_GE(once, kSize);
    EXPECT_EQ(peak(program(true, false), allocator), 2 * once) << allocator;
    EXPECT_EQ(peak(program(true, true), allocator), once) << allocator << ": the kernel has ended";
    EXPECT_EQ(peak(program(false, true), allocator), once) << allocator;
  }
}

// It is the stream's work that delays it, not the free: the host goes on at once, and the step takes no longer.
TEST(LateFree, TheHostDoesNotWait) {
  SimulationOptions options;
  const SimulationResult late = simulate(program(true, false), test_machine(), options);
  EXPECT_EQ(late.end, simulate(program(false, false), test_machine(), options).end);
  EXPECT_LT(late.records[2].host_end, late.records[1].end);
}

// Where there is room for one of the two, the second waits until the kernel has ended: PyTorch's allocator waits for
// the events of what other streams use before it gives up. Less than one of them is room for neither.
TEST(LateFree, AnAllocationThatFindsNoRoomWaits) {
  constexpr Bytes kLarge = MiB(20);  // a segment of its own
  for (const char* allocator : {"ideal", "pytorch"}) {
    const auto run = [&](bool late, Bytes capacity) {
      Trace trace = program(late, false);
      for (Storage& s : trace.storages) s.bytes = kLarge;
      Machine machine = test_machine();
      machine.tiers[0].capacity = capacity;
      SimulationOptions options;
      options.allocator = allocator;
      return simulate(trace, machine, options);
    };
    const SimulationResult waits = run(true, kLarge + kLarge / 2);
    EXPECT_TRUE(waits.fits) << allocator;
    EXPECT_EQ(waits.tiers[0].peak_allocated, kLarge) << allocator;
    EXPECT_EQ(waits.tiers[0].pressure.ooms, 0u) << allocator;
    EXPECT_GE(waits.records[3].host_end, waits.records[1].end) << allocator;
    EXPECT_EQ(waits.records[3].host_end_reason, WaitReason::memory) << allocator;
    EXPECT_EQ(waits.records[3].host_end_cause, 1u) << allocator;
    EXPECT_EQ(run(true, 2 * kLarge).tiers[0].peak_allocated, 2 * kLarge) << allocator << ": there is room for both";
    EXPECT_FALSE(run(true, kLarge - 1).fits) << allocator;
  }
}

// The call that then obtains a larger segment from the device has the same cause.
TEST(LateFree, TheCauseIsKeptWhereTheAllocatorThenCallsTheDevice) {
  Trace trace = program(true, false);
  trace.storages[0].bytes = MiB(20);
  trace.storages[1].bytes = MiB(24);
  Machine machine = test_machine();
  machine.tiers[0].capacity = MiB(30);
  SimulationOptions options;
  options.allocator = "pytorch";
  const SimulationResult waits = simulate(trace, machine, options);
  EXPECT_TRUE(waits.fits);
  EXPECT_GE(waits.records[3].host_end, waits.records[1].end);
  EXPECT_EQ(waits.records[3].host_end_reason, WaitReason::memory);
  EXPECT_EQ(waits.records[3].host_end_cause, 1u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
