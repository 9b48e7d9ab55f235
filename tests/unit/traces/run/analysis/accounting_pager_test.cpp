// Is waiting for a pager charged to the allocator and to faults, by the second?
#include "sim/trace/trace_builder.h"
#include "tests/support/oldest_first_pager.h"
#include "tests/support/test_machine.h"
#include "traces/run/analysis/accounting.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kGigabyte = 1'000'000'000;

// Kernels of one second: A makes 50 GB, B makes 50 GB, C reads the first again. 80 GB fit; a move takes 5 s.
Trace three_kernels() {
  TraceBuilder b;
  b.add_thread("main");
  b.add_stream("compute", StreamRole::compute);
  Trace& t = b.trace();
  t.constants = {};
  t.place("hbm");
  const StorageId first = b.add_storage(50 * kGigabyte, StorageKind::activation, "hbm", "first");
  const StorageId second = b.add_storage(50 * kGigabyte, StorageKind::activation, "hbm", "second");
  const auto kernel = [&](Use use) {
    Op op;
    op.kind = OpKind::kernel;
    op.duration = from_seconds(1);
    b.append(op, {&use, 1});
  };
  b.alloc(first, 0);
  kernel({first, 0, Access::write});
  b.alloc(second, 0);
  kernel({second, 0, Access::write});
  kernel({first, TraceBuilder::kLatest, Access::read});
  return std::move(b).finish();
}

TimeAccounting accounted(PagerClock clock) {
  OldestFirstPager pager(clock);
  RunSettings settings;
  settings.pager = &pager;
  settings.allocator = "ideal";
  return account(simulate_and_record(three_kernels(), test_machine(), settings));
}

// The host stops at the second allocation until A has ended (1 s) and the first storage has left (6 s); before C until
// B has ended and the second has left (12 s); C starts when the first is back (17 s).
TEST(AccountingOfPagers, OnTheHostClockChargesRoomToTheAllocatorAndDataToFaults) {
  const ClassTimes times = accounted(PagerClock::host).total;
  EXPECT_EQ(times[TimeClass::compute], from_seconds(3));
  EXPECT_EQ(times[TimeClass::allocator], from_seconds(10));
  EXPECT_EQ(times[TimeClass::fault], from_seconds(5));
  EXPECT_EQ(times.total(), from_seconds(18));
}

// The host does not stop; the kernels wait, for room and for data.
TEST(AccountingOfPagers, OnTheDeviceClockChargesAllToFaults) {
  const ClassTimes times = accounted(PagerClock::device).total;
  EXPECT_EQ(times[TimeClass::compute], from_seconds(3));
  EXPECT_EQ(times[TimeClass::allocator], Duration{});
  EXPECT_EQ(times[TimeClass::fault], times.total() - from_seconds(3));
  EXPECT_EQ(times.total(), from_seconds(18));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
