// Does the CUDA back end execute schedules, and does its check of contents see what goes wrong? Skipped where
// no GPU can be used.
#include <gtest/gtest.h>

#include "sim/error.h"
#include "sim/trace/trace_builder.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/scratch_folder.h"
#include "validate/replay/cuda_backend.h"
#include "validate/replay/execution.h"
#include "validate/replay/schedule.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class CudaBackendTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = cuda_unavailable_reason(); !reason.empty()) GTEST_SKIP() << reason;
  }
  std::unique_ptr<Backend> backend() const {
    CudaBackendSettings settings;
    settings.scratch = folder_.path();
    settings.file_bytes = GiB(1);
    return make_cuda_backend(settings);
  }
  ScratchFolder folder_;
};

TEST_F(CudaBackendTest, SchedulesOfEveryPolicyKeepTheirContents) {
  GptShape shape;
  shape.steps = 2;
  const std::unique_ptr<Backend> cuda = backend();
  for (const std::string policy :
       {"", "offload:what=activations,to=host,min_bytes=0", "offload:what=activations,to=host,pinned=0,min_bytes=0",
        "offload:what=activations,to=nvme,min_bytes=0", "offload:what=optimizer,to=host",
        "offload:what=optimizer,to=nvme", "checkpoint:mode=full", "zero:stage=2,ranks=8"}) {
    const Trace trace = gpt_step(shape);
    const Trace schedule = schedule_of(policy.empty() ? trace : rewritten(trace, policy), {}, 0.25);
    ExecutionSettings settings;
    settings.passes = 2;
    settings.contents = step_contents(schedule, schedule_of(trace), trace.storages.size()).value_or(StepContents{});
    const Execution execution = execute(schedule, *cuda, settings);
    EXPECT_GT(execution.integrity.checks, 0u) << policy;
    EXPECT_EQ(execution.integrity.mismatches, 0u) << policy;
    EXPECT_EQ(execution.totals.size(), 2u) << policy;
    // In a stream, one op after another.
    std::vector<Time> end(schedule.streams.size(), Time{});
    for (OpId id = 0; id < schedule.ops.size(); ++id) {
      const Op& op = schedule.ops[id];
      if (!runs_on_device(op.kind)) continue;
      EXPECT_LE(execution.times[id].start, execution.times[id].end) << policy << ", op " << id;
      EXPECT_GE(execution.times[id].start + microseconds(2), end[op.stream]) << policy << ", op " << id;
      end[op.stream] = execution.times[id].end;
      const bool alone = op.kind == OpKind::kernel || op.kind == OpKind::collective;
      EXPECT_EQ(execution.alone[id] > Duration{}, alone) << policy << ", op " << id;
      if (op.kind == OpKind::collective) {
        EXPECT_GE(execution.times[id].end - execution.times[id].start, op.duration) << policy << ", op " << id;
      }
    }
  }
}

// One stream of each kind, and one event of each.
Trace small_schedule() {
  TraceBuilder builder;
  builder.add_thread("main");
  builder.add_stream("compute", StreamRole::compute);
  builder.add_stream("storage", StreamRole::storage);
  builder.trace().ops.resize(8);
  for (Op& op : builder.trace().ops) op.kind = OpKind::kernel;
  builder.trace().ops[4].kind = builder.trace().ops[5].kind = OpKind::storage_io;
  builder.trace().ops[4].stream = builder.trace().ops[5].stream = 1;
  builder.trace().event_count = 2;
  return std::move(builder).finish();
}

TEST_F(CudaBackendTest, AWrongByteIsSeenWithTheOpThatReadsIt) {
  const Trace schedule = small_schedule();
  const std::unique_ptr<Backend> cuda = backend();
  cuda->prepare(schedule, true);
  cuda->start_clock();
  const Bytes bytes = 100'003;  // a tail of three bytes
  const auto address = cuda->device_memory().obtain(bytes);
  ASSERT_TRUE(address.has_value());
  const Buffer on_device{PlaceClass::device, reinterpret_cast<void*>(*address), 0, bytes};
  const Buffer on_host = cuda->allocate_host(bytes, true);
  cuda->fill(on_host, 7);
  cuda->copy(0, 0, {on_host, 7, 0}, {on_device, 0, 0}, bytes);
  const Operand reads{on_device, 7, 0};
  cuda->kernel(1, 0, {OperatorClass::elementwise, DataType::fp32, 1e6, bytes}, {&reads, 1});
  cuda->synchronize_device();
  EXPECT_EQ(cuda->integrity().mismatches, 0u);
  EXPECT_EQ(cuda->integrity().checks, 2u);

  static_cast<char*>(on_host.data)[bytes - 1] ^= 1;  // the last byte of the tail
  cuda->copy(2, 0, {on_host, 0, 0}, {on_device, 0, 0}, bytes);
  cuda->kernel(3, 0, {OperatorClass::elementwise, DataType::fp32, 1e6, bytes}, {&reads, 1});
  cuda->synchronize_device();
  EXPECT_EQ(cuda->integrity().mismatches, 1u);
  EXPECT_NE(cuda->integrity().first_mismatch.find("op 3,"), std::string::npos) << cuda->integrity().first_mismatch;
  cuda->free_host(on_host);
  cuda->device_memory().give_back(*address, bytes);
}

TEST_F(CudaBackendTest, StreamsAndStorageQueuesWaitForOneAnother) {
  const Trace schedule = small_schedule();
  const std::unique_ptr<Backend> cuda = backend();
  cuda->prepare(schedule, true);
  cuda->start_clock();
  const Bytes bytes = MiB(64);
  const auto address = cuda->device_memory().obtain(bytes);
  ASSERT_TRUE(address.has_value());
  const Buffer on_device{PlaceClass::device, reinterpret_cast<void*>(*address), 0, bytes};
  const Buffer out = cuda->allocate_host(bytes, true), in = cuda->allocate_host(bytes, true);
  const Buffer file = cuda->allocate_file(bytes);
  cuda->fill(on_device, 11);
  cuda->copy(0, 0, {on_device, 11, 0}, {out, 0, 0}, bytes);
  cuda->record(0, 0);
  cuda->wait(0, 1);  // the queue for the stream
  cuda->storage_io(4, 1, {out, 11, 0}, {file, 0, 0}, bytes);
  cuda->storage_io(5, 1, {file, 11, 0}, {in, 0, 0}, bytes);
  cuda->record(1, 1);
  cuda->wait(1, 0);  // the stream for the queue
  cuda->copy(1, 0, {in, 11, 0}, {on_device, 0, 0}, bytes);
  cuda->synchronize_device();
  EXPECT_EQ(cuda->integrity().mismatches, 0u) << cuda->integrity().first_mismatch;
  EXPECT_GE(cuda->integrity().checks, 4u);
  std::vector<OpTimes> times;
  cuda->device_times(times);
  const Duration slack = microseconds(50);  // two clocks
  EXPECT_GE(times[4].start + slack, times[0].end);
  EXPECT_GE(times[5].start, times[4].end);
  EXPECT_GE(times[1].start + slack, times[5].end);
  cuda->free_file(file);
  cuda->free_host(in);
  cuda->free_host(out);
  cuda->device_memory().give_back(*address, bytes);
}

TEST_F(CudaBackendTest, ABiggerKernelTakesLonger) {
  const std::unique_ptr<Backend> cuda = backend();
  for (const OperatorClass of : {OperatorClass::gemm, OperatorClass::elementwise}) {
    const double flops = of == OperatorClass::gemm ? 2e12 : 1e6;
    const Duration small = cuda->kernel_alone({of, DataType::bf16, flops, MiB(256)});
    const Duration large = cuda->kernel_alone({of, DataType::bf16, 4 * flops, 4 * MiB(256)});
    EXPECT_GT(small, Duration{});
    EXPECT_GT(to_seconds(large), 2 * to_seconds(small)) << to_string(of);
  }
  EXPECT_GT(cuda->host_work_alone(MiB(256)), Duration{});
}

TEST_F(CudaBackendTest, WhatItLacksIsRefused) {
  CudaBackendSettings settings;
  settings.device = 4096;
  EXPECT_THROW(make_cuda_backend(settings), UsageError);
  settings = {};
  settings.scratch = folder_ / "absent";
  EXPECT_THROW(make_cuda_backend(settings), UsageError);
  const std::unique_ptr<Backend> without_file = make_cuda_backend({});
  EXPECT_THROW(without_file->prepare(small_schedule(), true), UsageError);
  EXPECT_THROW(without_file->allocate_file(4096), UsageError);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
