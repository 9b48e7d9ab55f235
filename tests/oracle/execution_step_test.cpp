// Real ExecutionTraces alone and real Chakra graphs: counts as in the data's README, and beside what a capture of the
// same run measured.
#include "models/workload/import/execution_trace/execution_step.h"

#include <gtest/gtest.h>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/workload/import/chakra/chakra_import.h"
#include "models/workload/import/execution_trace/execution_trace_join.h"
#include "models/workload/import/kineto/kineto_reader.h"
#include "models/workload/import/timed/timed_import.h"
#include "sim/trace/trace_check.h"
#include "tests/support/shared_data.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::size_t count(const Trace& trace, OpKind kind) {
  std::size_t n = 0;
  for (const Op& op : trace.ops) n += op.kind == kind;
  return n;
}

// The most that lives at once, and the bytes of what is of one kind.
Bytes peak(const Trace& trace) {
  Bytes live = 0, most = 0;
  for (const Storage& s : trace.storages) live += s.preexisting ? s.bytes : 0;
  for (const Op& op : trace.ops) {
    if (op.kind == OpKind::alloc) live += trace.storages[op.target].bytes;
    if (op.kind == OpKind::free) live -= trace.storages[op.target].bytes;
    most = std::max(most, live);
  }
  return most;
}

Bytes bytes_of_kind(const Trace& trace, StorageKind kind) {
  Bytes bytes = 0;
  for (const Storage& s : trace.storages) bytes += s.kind == kind ? s.bytes : 0;
  return bytes;
}

double device_seconds(const Trace& trace) {
  double seconds = 0;
  for (const Op& op : trace.ops)
    if (runs_on_device(op.kind)) seconds += to_seconds(op.duration);
  return seconds;
}

TEST(ExecutionTraceAlone, Vgg13IsTheStepThatTheCaptureMeasured) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED names no folder with captures";
  const auto file = *data / "traces/execution_trace/vgg13_h100_bs512.json";
  const ImportedStep step = import_execution_trace(file, {});
  EXPECT_EQ(count(step.trace, OpKind::kernel), 111U);
  // The join with the capture, which knows when memory was allocated and freed.
  const TimedCapture capture = read_kineto(*data / "traces/kineto/vgg13_h100_bs512_train.json");
  ImportedTrace imported = import_timed_capture(capture);
  const JoinReport joined = join_execution_trace(imported, capture, read_execution_trace(file));
  const Bytes parameters = bytes_of_kind(imported.trace, StorageKind::parameter);
  EXPECT_EQ(bytes_of_kind(step.trace, StorageKind::parameter), parameters);
  EXPECT_EQ(bytes_of_kind(step.trace, StorageKind::gradient), parameters) << "one per parameter";
  EXPECT_EQ(bytes_of_kind(step.trace, StorageKind::optimizer_state), 2 * parameters) << "Adam's";
  double flops = 0;
  for (const Op& op : step.trace.ops) flops += op.flops;
  EXPECT_NEAR(flops, joined.flops, 1e-6 * flops);
  // Measured: 39,343.9 MB at the peak of Total Allocated. Liveness is a lower bound, and no loose one.
  const double measured = 39343.9e6;
  EXPECT_LE(static_cast<double>(peak(step.trace)), measured);
  EXPECT_GE(static_cast<double>(peak(step.trace)), 0.9 * measured);
  // Measured: 347.0 ms of GPU time.
  const Trace priced = modelled_on(step.trace, load_machine("h100-sxm-80gb"));
  const double predicted = device_seconds(priced);
  std::printf("VGG13 on an H100: %.1f ms predicted, 347.0 measured; peak %.1f MB derived, 39343.9 measured\n",
              1e3 * predicted, 1e-6 * static_cast<double>(peak(step.trace)));
  EXPECT_NEAR(predicted, 0.347, 0.347 * 0.2);
}

TEST(ExecutionTraceAlone, OtherCapturesHaveTheirCounts) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED names no folder with captures";
  const ImportedStep linear = import_execution_trace(*data / "traces/execution_trace/linear_2080ti.json.gz", {});
  EXPECT_EQ(count(linear.trace, OpKind::kernel), 219U);
  const ImportedStep resnet = import_execution_trace(*data / "traces/execution_trace/resnet_1gpu_1.0.3.json.gz", {});
  EXPECT_EQ(resnet.trace.steps.size(), 3U);
  EXPECT_EQ(count(resnet.trace, OpKind::collective), 21U);
  EXPECT_EQ(resnet.trace.groups.at(0).ranks, 1U);
  for (int rank = 0; rank < 4; ++rank) {
    const std::string name = "rank" + std::to_string(rank);
    const ImportedStep step = import_execution_trace(*data / ("traces/dlrm_8xv100/" + name + ".et.json.gz"), {});
    ImportedTrace capture =
        import_timed_capture(read_kineto(*data / ("traces/dlrm_8xv100/" + name + ".kineto.json.gz")));
    EXPECT_EQ(count(step.trace, OpKind::collective), count(capture.trace, OpKind::collective)) << name;
    EXPECT_EQ(step.trace.job_ranks, 8U) << name;
    EXPECT_EQ(check(step.trace), std::vector<std::string>{});
  }
}

// The archives in the data hold one file each, beside what a packer on macOS adds.
TEST(ChakraCaptures, BothNotationsOfResNet50) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED names no folder with captures";
  const ImportedStep protobuf = import_chakra_messages(*data / "traces/chakra/feeder_tests_trace.tar.gz", {});
  EXPECT_EQ(count(protobuf.trace, OpKind::kernel), 889U);
  EXPECT_EQ(count(protobuf.trace, OpKind::copy), 320U);
  EXPECT_EQ(count(protobuf.trace, OpKind::collective), 7U);
  EXPECT_NEAR(device_seconds(protobuf.trace), 0.329543, 1e-9);
  double host = 0;
  for (const Op& op : protobuf.trace.ops) host += to_seconds(op.host_gap + op.host_cost);
  EXPECT_NEAR(host, 0.052252, 1e-9);
  EXPECT_TRUE(protobuf.trace.knowledge.timing && protobuf.trace.knowledge.dataflow);
  // 25.6 million parameters of 4 bytes, in storages rounded to 512.
  EXPECT_NEAR(static_cast<double>(bytes_of_kind(protobuf.trace, StorageKind::parameter)), 102.4e6, 0.3e6);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
