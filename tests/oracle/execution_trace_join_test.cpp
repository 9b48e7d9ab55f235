// Does the join of real captures with their ExecutionTraces find every operator and nearly every byte?
#include "models/workload/import/execution_trace/execution_trace_join.h"
#include "models/workload/import/execution_trace/same_run.h"
#include "models/workload/import/kineto/kineto_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "models/workload/import/timed/timed_import.h"
#include "sim/error.h"
#include "sim/trace/dataflow_note.h"
#include "sim/trace/trace_check.h"
#include "tests/support/shared_data.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

struct Joined {
  TimedCapture capture;
  ExecutionTrace execution;
  ImportedTrace before, after;
  JoinReport report;
};

Joined join(const fs::path& kineto, const fs::path& execution) {
  Joined j{read_kineto(kineto), read_execution_trace(execution), {}, {}, {}};
  j.before = import_timed_capture(j.capture);
  j.after = j.before;
  j.report = join_execution_trace(j.after, j.capture, j.execution);
  return j;
}

std::map<std::pair<StorageKind, bool>, std::pair<int, Bytes>> by_kind(const Trace& trace) {
  std::map<std::pair<StorageKind, bool>, std::pair<int, Bytes>> result;
  for (const Storage& s : trace.storages) {
    auto& [count, bytes] = result[{s.kind, s.preexisting}];
    ++count;
    bytes += s.bytes;
  }
  return result;
}

// VGG13 on 224 x 224 images: (channels in, channels out, side of the result).
constexpr std::array<std::array<double, 3>, 10> kConvolutions = {{{3, 64, 224},
                                                                  {64, 64, 224},
                                                                  {64, 128, 112},
                                                                  {128, 128, 112},
                                                                  {128, 256, 56},
                                                                  {256, 256, 56},
                                                                  {256, 512, 28},
                                                                  {512, 512, 28},
                                                                  {512, 512, 14},
                                                                  {512, 512, 14}}};
constexpr std::array<std::array<double, 2>, 3> kLinears = {{{25088, 4096}, {4096, 4096}, {4096, 1000}}};

double vgg13_flops(double batch) {
  double forward = 0;
  for (const auto& [in, out, side] : kConvolutions) forward += 2 * batch * in * out * side * side * 9;
  for (const auto& [in, out] : kLinears) forward += 2 * batch * in * out;
  const double first = 2 * batch * 3 * 64 * 224 * 224 * 9;  // no gradient of the images
  return 3 * forward - first;
}

double vgg13_parameters() {
  double count = 0;
  for (const auto& [in, out, side] : kConvolutions) count += in * out * 9 + out + 0 * side;
  for (const auto& [in, out] : kLinears) count += in * out + out;
  return count;
}

class Vgg13 : public testing::Test {
 protected:
  void SetUp() override {
    const auto data = shared_data();
    if (!data) GTEST_SKIP() << "MEMWALL_SHARED names no folder with captures";
    joined_ = join(*data / "traces/kineto/vgg13_h100_bs512_train.json",
                   *data / "traces/execution_trace/vgg13_h100_bs512.json");
  }
  const Trace& trace() const { return joined_.after.trace; }
  Joined joined_;
};

TEST_F(Vgg13, Joins900Of900OperatorsByNameOnBothThreads) {
  EXPECT_EQ(joined_.report.operators.matched, 900U);
  EXPECT_EQ(joined_.report.operators.nodes, 900U);
  ASSERT_EQ(joined_.report.operators.threads.size(), 2U);
  EXPECT_EQ(joined_.report.operators.threads[0].matched, 575U);
  EXPECT_EQ(joined_.report.operators.threads[1].matched, 325U);
  for (std::size_t n = 0; n < joined_.execution.nodes.size(); ++n) {
    const std::uint32_t k = joined_.report.operators.operator_of_node[n];
    if (k == kNoIndex) continue;
    EXPECT_EQ(joined_.capture.text(joined_.capture.operators[k].name),
              joined_.execution.name(joined_.execution.nodes[n]));
  }
}

TEST_F(Vgg13, ClaimsAtLeast999PerMilleOfNewStorageBytes) {
  EXPECT_GE(joined_.report.claimed_share, 0.999);
  EXPECT_GT(joined_.report.storages.birth_bytes, Bytes{80'000'000'000});
  EXPECT_EQ(joined_.report.storages.allocations, 180U);
  EXPECT_EQ(joined_.report.storages.claimed + joined_.report.storages.workspaces, 180U);
}

TEST_F(Vgg13, RunningTotalEqualsTotalAllocatedAtAll360Events) {
  Bytes total = trace().untracked_bytes;
  for (const Storage& s : trace().storages) total += s.preexisting ? rounded_size(s.bytes) : 0;
  std::size_t events = 0;
  for (std::size_t id = 0; id < trace().ops.size(); ++id) {
    const Op& op = trace().ops[id];
    if (op.kind != OpKind::alloc && op.kind != OpKind::free) continue;
    const Bytes bytes = rounded_size(trace().storages[op.target].bytes);
    total += op.kind == OpKind::alloc ? bytes : -bytes;
    ASSERT_NE(joined_.after.memory_of_op[id], kNoIndex);
    EXPECT_EQ(total, joined_.capture.memory[joined_.after.memory_of_op[id]].total_allocated) << "at op " << id;
    ++events;
  }
  EXPECT_EQ(events, 360U);
}

TEST_F(Vgg13, EveryDeviceOpHasUsesAndNoneIsLeftOut) {
  EXPECT_EQ(joined_.report.dataflow.device_ops, 325U);
  EXPECT_EQ(joined_.report.dataflow.with_uses, 325U);
  EXPECT_EQ(joined_.report.dataflow.left_out_dead, 0U);
  EXPECT_EQ(joined_.report.dataflow.left_out_unwritten, 0U);
  EXPECT_EQ(check(trace()), std::vector<std::string>());
  EXPECT_TRUE(trace().knowledge.dataflow && trace().knowledge.shapes);
}

TEST_F(Vgg13, KindsHoldWhatTheModelAndAdamNeed) {
  const auto kinds = by_kind(trace());
  const auto at = [&](StorageKind kind, bool preexisting) {
    const auto found = kinds.find({kind, preexisting});
    return found == kinds.end() ? std::pair<int, Bytes>() : found->second;
  };
  // 10 convolutions and 3 linear layers, weight and bias each; Adam keeps two moments of each.
  EXPECT_EQ(at(StorageKind::parameter, true).first, 26);
  EXPECT_EQ(at(StorageKind::optimizer_state, true).first, 52);
  EXPECT_EQ(at(StorageKind::gradient, false).first, 26);
  EXPECT_EQ(at(StorageKind::gradient, true).first, 26);  // of the step before, freed by zero_grad
  EXPECT_EQ(at(StorageKind::input, true).first, 2);      // images and labels
  const double parameter_bytes = 4 * vgg13_parameters();
  EXPECT_NEAR(static_cast<double>(at(StorageKind::parameter, true).second), parameter_bytes, 26 * 512);
  EXPECT_EQ(at(StorageKind::optimizer_state, true).second, 2 * at(StorageKind::parameter, true).second);
  EXPECT_GE(at(StorageKind::gradient, false).second, at(StorageKind::parameter, true).second);
  EXPECT_EQ(at(StorageKind::parameter, false).first + at(StorageKind::optimizer_state, false).first, 0);
  EXPECT_LE(at(StorageKind::unknown, true).second, Bytes{3'000'000});
}

TEST_F(Vgg13, FlopsAreThoseOfTheLayers) { EXPECT_NEAR(joined_.report.flops / vgg13_flops(512), 1.0, 1e-9); }

// Its tensors are of fp32, and most of its convolutions ran in TF32, as cuDNN names their kernels.
TEST_F(Vgg13, WhatRanInTf32IsToldByTheKernels) {
  double in_tf32 = 0, all = 0;
  for (const Op& op : trace().ops)
    if (op.kind == OpKind::kernel && op.operator_class == OperatorClass::convolution && op.flops > 0) {
      all += op.flops;
      in_tf32 += op.data_type == DataType::tf32 ? op.flops : 0;
    }
  EXPECT_GT(in_tf32, 0.9 * all);
}

TEST_F(Vgg13, ParametersGradientsAndStatesAreNamedAlike) {
  std::map<std::string, int> labels;
  for (const Storage& s : trace().storages) ++labels[trace().strings[s.label]];
  const std::string first = "VGG_0.Sequential_0.Conv2d_0.weight", last = "VGG_0.Sequential_1.Linear_2.bias";
  for (const std::string& name : {first, last}) {
    EXPECT_EQ(labels[name], 1) << name;
    EXPECT_EQ(labels["gradient of " + name], 1) << name;
    EXPECT_EQ(labels["optimizer state of " + name], 2) << name;
  }
}

TEST_F(Vgg13, AnActivationIsMadeInForwardAndReadInBackwardBeforeItIsFreed) {
  // The first convolution's result: bias and ReLU in place, then read by the second and by both backward passes.
  const auto made = std::find_if(trace().ops.begin(), trace().ops.end(), [&](const Op& op) {
    return op.kind == OpKind::kernel && trace().strings[op.operator_name] == "aten::cudnn_convolution";
  });
  ASSERT_NE(made, trace().ops.end());
  const StorageId storage = trace().uses_of(*made).back().storage;
  EXPECT_EQ(trace().storages[storage].kind, StorageKind::activation);
  int forward_writes = 0, backward_reads = 0, other_writes = 0;
  for (const Op& op : trace().ops)
    for (const Use& use : trace().uses_of(op)) {
      if (use.storage != storage) continue;
      forward_writes += use.access == Access::write && op.phase == Phase::forward;
      other_writes += use.access == Access::write && op.phase != Phase::forward;
      backward_reads += use.access == Access::read && op.phase == Phase::backward;
    }
  EXPECT_GE(forward_writes, 3);
  EXPECT_GE(backward_reads, 2);
  EXPECT_EQ(other_writes, 0);
}

TEST_F(Vgg13, NothingThatTheSimulatorTimesIsChanged) {
  const Trace& before = joined_.before.trace;
  ASSERT_EQ(trace().ops.size(), before.ops.size());
  for (std::size_t id = 0; id < before.ops.size(); ++id) {
    const Op &a = before.ops[id], &b = trace().ops[id];
    EXPECT_TRUE(a.kind == b.kind && a.thread == b.thread && a.stream == b.stream && a.target == b.target);
    EXPECT_TRUE(a.duration == b.duration && a.host_gap == b.host_gap && a.host_cost == b.host_cost &&
                a.return_delay == b.return_delay && a.wait_for == b.wait_for);
  }
}

TEST_F(Vgg13, WithAFifthOfTheOperatorsRenamedItIsRefusedAndTheTraceUntouched) {
  ImportedTrace again = joined_.before;
  const StringId other = joined_.execution.strings.intern("aten::somebody_else");
  for (std::size_t n = 0; n < joined_.execution.nodes.size(); n += 5) joined_.execution.nodes[n].name = other;
  try {
    join_execution_trace(again, joined_.capture, joined_.execution);
    FAIL() << "joined";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find(" of 90"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("expected at least 90 %"), std::string::npos) << error.what();
  }
  EXPECT_EQ(again.trace.storages.size(), joined_.before.trace.storages.size());
  EXPECT_EQ(again.trace.untracked_bytes, joined_.before.trace.untracked_bytes);
  EXPECT_TRUE(again.trace.uses.empty());
}

TEST_F(Vgg13, WithoutItsAllocationsAnOperatorsResultIsNotClaimed) {
  // The control of the share above: rename nothing, but let every allocation look like another size.
  ImportedTrace again = joined_.before;
  for (Storage& s : again.trace.storages) s.bytes = s.preexisting ? s.bytes : 512 * 7 + s.bytes * 3;
  const JoinReport report = join_execution_trace(again, joined_.capture, joined_.execution);
  EXPECT_LT(report.claimed_share, 0.1);
}

TEST(Dlrm, EveryRankJoinsAndEveryLaunchedDeviceOpHasUses) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED names no folder with captures";
  for (int rank = 0; rank < 4; ++rank) {
    SCOPED_TRACE(rank);
    const std::string stem = "traces/dlrm_8xv100/rank" + std::to_string(rank);
    const Joined j = join(*data / (stem + ".kineto.json.gz"), *data / (stem + ".et.json.gz"));
    EXPECT_GE(j.report.operators.matched, 1670U);
    EXPECT_EQ(j.report.operators.nodes, 1672U);
    EXPECT_EQ(j.report.dataflow.with_uses, j.report.dataflow.device_ops);
    EXPECT_EQ(j.report.dataflow.left_out_unwritten, 0U);
    EXPECT_EQ(check(j.after.trace), std::vector<std::string>());
    const auto kinds = by_kind(j.after.trace);
    // Embedding tables and their optimizer state dominate: 2.56 GB each on this model's ranks.
    EXPECT_GT(kinds.at({StorageKind::parameter, true}).second, Bytes{2'500'000'000});
    EXPECT_GT(kinds.at({StorageKind::optimizer_state, true}).second, Bytes{2'500'000'000});
    EXPECT_GT(kinds.at({StorageKind::communication_buffer, false}).first, 0);
  }
}

// Each rank runs the same operators: the process tells them apart, and where that and the rank are not known, as of
// jobs in containers, the messages of their all-to-alls.
TEST(Dlrm, TheExecutionTraceOfAnotherRankIsRefused) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED names no folder with captures";
  EXPECT_THROW(join(*data / "traces/dlrm_8xv100/rank1.kineto.json.gz", *data / "traces/dlrm_8xv100/rank0.et.json.gz"),
               InputError);
}

TEST(Dlrm, TheExecutionTraceOfAnotherRankIsToldByItsMessages) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED names no folder with captures";
  TimedCapture capture = read_kineto(*data / "traces/dlrm_8xv100/rank0.kineto.json.gz");
  capture.rank = -1;
  for (const int rank : {0, 1}) {
    ExecutionTrace execution = read_execution_trace(*data / fmt::format("traces/dlrm_8xv100/rank{}.et.json.gz", rank));
    execution.process = 0;
    const ShapeComparison shapes = compare_shapes(capture, execution, match_operators(capture, execution));
    EXPECT_GT(shapes.compared, 1000u);
    EXPECT_EQ(shapes.collectives_differing > 0, rank == 1);
    EXPECT_EQ(shapes.differing > 0, rank == 1);
    ImportedTrace imported = import_timed_capture(capture);
    if (rank == 0)
      EXPECT_NO_THROW(join_execution_trace(imported, capture, execution));
    else
      EXPECT_THROW(join_execution_trace(imported, capture, execution), InputError);
  }
}

// Its profiles have no memory events: lifetimes are those that its ExecutionTrace alone has.
TEST(Dlrm, KnowsNoLessThanItsExecutionTraceAlone) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED names no folder with captures";
  const Joined j =
      join(*data / "traces/dlrm_8xv100/rank0.kineto.json.gz", *data / "traces/dlrm_8xv100/rank0.et.json.gz");
  EXPECT_TRUE(j.after.trace.knowledge.allocations);
  EXPECT_TRUE(j.after.trace.knowledge.dataflow);
  EXPECT_GT(j.report.lives.made, 100u);
  EXPECT_EQ(j.before.trace.ops.size() + j.report.lives.made + j.report.lives.freed, j.after.trace.ops.size());
}

TEST(Linear, OneOfFortyIterationsJoinsButTheRestStaysUnknown) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED names no folder with captures";
  const Joined j =
      join(*data / "traces/kineto/linear_2080ti.json.gz", *data / "traces/execution_trace/linear_2080ti.json.gz");
  EXPECT_EQ(j.report.operators.matched, 928U);
  EXPECT_EQ(j.report.operators.nodes, 928U);
  EXPECT_NEAR(j.report.covered_share, 1.0 / 40, 0.001);
  EXPECT_FALSE(j.after.trace.knowledge.dataflow);
  EXPECT_NE(why_no_dataflow(j.after.trace).find("about one of 40 iterations"), std::string::npos)
      << why_no_dataflow(j.after.trace);
}

TEST(Resnet, AnExecutionTraceOfAnotherRunIsRefusedWithTheFigures) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED names no folder with captures";
  try {
    join(*data / "traces/kineto/resnet50_v100_bs32_2021.json.gz",
         *data / "traces/execution_trace/resnet_1gpu_1.0.3.json.gz");
    FAIL() << "joined";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find(" of 14388 operators (34.4 %)"), std::string::npos) << error.what();
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
