// Does what record_shapes wrote give the FLOPs that the ExecutionTrace of the same run gives, which knows the results
// too?
#include "models/workload/import/timed/recorded_shapes.h"

#include <gtest/gtest.h>

#include "models/workload/import/execution_trace/execution_trace_join.h"
#include "models/workload/import/kineto/kineto_reader.h"
#include "tests/support/shared_data.h"
#include "models/workload/import/timed/timed_import.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Work {
  double flops = 0, bytes = 0;
};

Work work_of(const Trace& trace) {
  Work all;
  for (const Op& op : trace.ops) {
    if (op.kind != OpKind::kernel) continue;
    all.flops += op.flops;
    all.bytes += static_cast<double>(op.bytes);
  }
  return all;
}

void expect_same(const char* kineto, const char* execution, double bytes_off) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "no captures";
  const TimedCapture capture = read_kineto(*data / "traces" / kineto);
  ImportedTrace by_inputs = import_timed_capture(capture), by_join = import_timed_capture(capture);
  add_recorded_shapes(capture, by_inputs);
  join_execution_trace(by_join, capture, read_execution_trace(*data / "traces" / execution));
  const Work inputs = work_of(by_inputs.trace), joined = work_of(by_join.trace);
  ASSERT_GT(joined.flops, 0);
  EXPECT_NEAR(inputs.flops / joined.flops, 1, 1e-9);
  EXPECT_NEAR(inputs.bytes / joined.bytes, 1, bytes_off);
}

// What is missing of the bytes: lists of tensors, whose sizes files of that year leave out, and results of pooling. The
// join counts twice what a fill overwrites.
TEST(RecordedShapes, OfVgg13AreThoseOfItsExecutionTrace) {
  expect_same("kineto/vgg13_h100_bs512_train.json", "execution_trace/vgg13_h100_bs512.json", 0.08);
}

TEST(RecordedShapes, OfDlrmAreThoseOfItsExecutionTrace) {
  expect_same("dlrm_8xv100/rank0.kineto.json.gz", "dlrm_8xv100/rank0.et.json.gz", 0.08);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
