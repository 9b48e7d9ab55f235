// What a trace that was captured lacks, and its schedule gets: pages locked, lifetimes, waits.
#include <gtest/gtest.h>

#include "sim/error.h"
#include "sim/trace/trace_builder.h"
#include "sim/trace/trace_check.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/small_schedule.h"
#include "validate/replay/schedule.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(CapturedSchedule, OnlyHostMemoryOfAPinnedCopyIsPageLocked) {
  SmallSchedule s;
  Op copy = s.op(OpKind::copy, 1000);
  copy.to = s.b.trace().place("host");
  s.b.append(copy);
  const Trace schedule = schedule_of(std::move(s.b).finish());
  const auto uses = schedule.uses_of(schedule.ops[0]);
  EXPECT_FALSE(schedule.storages[uses[0].storage].pinned);
  EXPECT_TRUE(schedule.storages[uses[1].storage].pinned);
}

TEST(CapturedSchedule, WithoutAllocationsStoragesLiveThroughout) {
  SmallSchedule s;
  const StorageId made = s.b.add_storage(512, StorageKind::activation, "hbm", "made");
  s.b.append(s.op(OpKind::kernel, 8), std::vector<Use>{{made, 0, Access::write}});
  s.b.trace().knowledge = {.timing = true, .dataflow = true};
  const Trace schedule = schedule_of(s.b.trace());
  EXPECT_TRUE(schedule.storages[made].preexisting);
  EXPECT_TRUE(has_note(schedule, "1 storages live throughout"));
  s.b.trace().knowledge.allocations = true;  // then it is an error of the trace
  EXPECT_NE(schedule_refusal(s.b.trace()).find("which nobody has allocated"), std::string::npos);
}

// A kernel on one stream makes what a kernel on another reads, then a third writes over it; the capture shows no waits.
Trace without_waits(bool inferred, bool added) {
  SmallSchedule s;
  s.b.add_stream("second", StreamRole::compute);
  const auto kernel = [&](std::uint16_t stream, Access access) {
    Op op = s.op(OpKind::kernel, 8);
    op.stream = stream;
    op.added = added && access == Access::read;
    s.b.append(op, std::vector<Use>{{s.device, access == Access::read ? TraceBuilder::kLatest : 0, access}});
  };
  const std::uint32_t event = s.b.add_event();
  s.b.record(event, 0, 0);
  s.b.trace().ops[s.b.wait(event, 1, 0)].inferred = inferred;
  kernel(0, Access::write);
  kernel(1, Access::read);
  kernel(1, Access::read);
  kernel(0, Access::write);
  kernel(0, Access::read);
  s.b.trace().steps.push_back({"step", 0, 7});
  return std::move(s.b).finish();
}

TEST(CapturedSchedule, WaitsThatACaptureDoesNotShowFollowFromWhatOpsUse) {
  const Trace schedule = schedule_of(without_waits(true, false));
  const std::vector<OpKind> expected = {OpKind::event_record, OpKind::event_wait, OpKind::kernel, OpKind::event_record,
                                        OpKind::event_wait,   OpKind::kernel,     OpKind::kernel, OpKind::event_record,
                                        OpKind::event_wait,   OpKind::kernel,     OpKind::kernel};
  std::vector<OpKind> kinds;
  for (const Op& op : schedule.ops) kinds.push_back(op.kind);
  EXPECT_EQ(kinds, expected) << "one before the first reader, one before what writes over it";
  EXPECT_EQ(schedule.ops[3].stream, 0);
  EXPECT_EQ(schedule.ops[4].stream, 1);
  EXPECT_EQ(schedule.ops[7].stream, 1);
  EXPECT_EQ(schedule.ops[8].stream, 0);
  EXPECT_TRUE(has_note(schedule, "2 waits between streams, which the capture does not show"));
  EXPECT_EQ(schedule.steps.at(0).last, schedule.ops.size());
  EXPECT_EQ(check(schedule), std::vector<std::string>{});
  // Whose waits are stated keeps them as they are, and policies' ops have their own.
  EXPECT_EQ(schedule_of(without_waits(false, false)).ops.size(), 7u);
  EXPECT_EQ(schedule_of(without_waits(true, true)).ops.size(), 7u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
