// What the executor decides before it runs: which content is where, which memory serves twice.
#include <gtest/gtest.h>

#include "sim/trace/trace_builder.h"
#include "tests/support/scripted_backend.h"
#include "validate/replay/execution.h"
#include "validate/replay/executor_contents.h"
#include "validate/replay/executor_places.h"
#include "validate/replay/schedule.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// A copy that fills the beginning of a buffer makes only that known.
TEST(ExecutorPlan, PartOfAStorageIsKnownAfterAPartialCopy) {
  TraceBuilder b;
  b.add_thread("main");
  b.add_stream("compute", StreamRole::compute);
  const StorageId small = b.add_storage(100, StorageKind::activation, "hbm", "small", true);
  const StorageId stage = b.add_storage(1000, StorageKind::workspace, "host", "stage", true);
  const StorageId back = b.add_storage(500, StorageKind::activation, "hbm", "back", true);
  b.trace().storages[stage].pinned = true;
  Op copy;
  copy.kind = OpKind::copy;
  copy.bytes = 100;
  copy.from = 0;
  copy.to = 1;
  const OpId out =
      b.append(copy, std::vector<Use>{{small, TraceBuilder::kLatest, Access::read}, {stage, 0, Access::write}});
  std::swap(copy.from, copy.to);
  const OpId in =
      b.append(copy, std::vector<Use>{{stage, TraceBuilder::kLatest, Access::read}, {back, 0, Access::write}});
  copy.bytes = 300;
  const OpId more =
      b.append(copy, std::vector<Use>{{stage, TraceBuilder::kLatest, Access::read}, {back, 0, Access::write}});
  Op kernel;
  kernel.kind = OpKind::kernel;
  kernel.bytes = 1;
  const OpId read =
      b.append(kernel, std::vector<Use>{{back, TraceBuilder::kLatest, Access::read}, {back, 0, Access::write}});
  const Trace schedule = schedule_of(std::move(b).finish());
  const ContentPlan plan(schedule);
  const std::uint64_t tag = plan.initial(small);
  EXPECT_NE(tag, 0u);
  EXPECT_EQ(plan.operands(out)[0].expected, tag);
  EXPECT_EQ(plan.operands(in)[0].expected, tag);
  EXPECT_EQ(plan.operands(in)[0].bytes, 100);
  EXPECT_EQ(plan.operands(more)[0].expected, 0u);  // of 300 bytes 100 are known
  ASSERT_EQ(plan.operands(read).size(), 2u);
  EXPECT_EQ(plan.operands(read)[0].bytes, 100);
  EXPECT_EQ(plan.operands(read)[0].expected, tag);
  EXPECT_EQ(plan.operands(read)[1].bytes, 500);
  EXPECT_NE(plan.operands(read)[1].made, 0u);
  ScriptedBackend backend;
  EXPECT_EQ(execute(schedule, backend, {}).integrity.mismatches, 0u);
}

// Storage 'second' may take the memory of 'first' only if its writer waits for the reader of 'first'.
TEST(ExecutorPlan, HostMemoryIsUsedAgainOnlyBehindItsReaders) {
  for (const bool ordered : {false, true}) {
    TraceBuilder b;
    b.add_thread("main");
    b.add_stream("compute", StreamRole::compute);
    const std::uint16_t in = b.add_stream("in", StreamRole::copy), out = b.add_stream("out", StreamRole::copy);
    const StorageId device = b.add_storage(5000, StorageKind::activation, "hbm", "device", true);
    const StorageId other = b.add_storage(5000, StorageKind::activation, "hbm", "other", true);
    const StorageId first = b.add_storage(5000, StorageKind::activation, "host", "first", true);
    const StorageId second = b.add_storage(6000, StorageKind::activation, "host", "second");
    b.trace().storages[first].pinned = b.trace().storages[second].pinned = true;
    Op copy;
    copy.kind = OpKind::copy;
    copy.bytes = 5000;
    copy.stream = in;
    copy.from = 1;
    copy.to = 0;
    b.append(copy, std::vector<Use>{{first, TraceBuilder::kLatest, Access::read}, {device, 0, Access::write}});
    const std::uint32_t landed = b.add_event();
    b.record(landed, in, 0);
    b.free(first, 0);
    b.alloc(second, 0);
    if (ordered) b.wait(landed, out, 0);
    copy.stream = out;
    std::swap(copy.from, copy.to);
    b.append(copy, std::vector<Use>{{other, TraceBuilder::kLatest, Access::read}, {second, 0, Access::write}});
    const Trace schedule = schedule_of(std::move(b).finish());
    const FixedPlaces places = plan_fixed_places(schedule);
    EXPECT_EQ(places.block_of[first] == places.block_of[second], ordered);
    EXPECT_EQ(places.block_of[device], FixedPlaces::kNone);
    EXPECT_EQ(places.host.allocated, 8192);
    EXPECT_EQ(places.host.reserved, ordered ? 8192 : 16'384);
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
