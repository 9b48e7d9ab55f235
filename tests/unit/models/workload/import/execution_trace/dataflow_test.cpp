// On programs of a few operators: who makes which storage, who reads it, and what is it for?
#include "models/workload/import/execution_trace/dataflow.h"

#include <gtest/gtest.h>

#include "models/workload/import/execution_trace/execution_trace_join.h"
#include "sim/error.h"
#include "sim/trace/derived_lives.h"
#include "tests/support/operator_scene.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kRelu = "aten::relu(Tensor self) -> Tensor";
const std::string kAdd = "aten::add_(Tensor(a!) self, Tensor other) -> Tensor(a!)";

TEST(Dataflow, AKernelReadsTheInputsAndWritesTheNewOutput) {
  Scene s;
  s.begin("aten::relu", kRelu, {{{100, 256}}}, {{{101, 256}}});
  const StorageId out = s.alloc(1024);
  const OpId kernel = s.kernel();
  s.end();
  const JoinReport report = s.join();
  EXPECT_EQ(s.uses(kernel), "r1v0 w0v1");
  EXPECT_EQ(s.kind(out), StorageKind::activation);
  EXPECT_EQ(s.label(out), "aten::relu");
  EXPECT_EQ(report.storages.claimed, 1U);
  EXPECT_EQ(report.storages.preexisting, 1U);
  EXPECT_EQ(s.imported.trace.untracked_bytes, 1'000'000 - 1024);
  EXPECT_TRUE(s.imported.trace.knowledge.dataflow);
}

TEST(Dataflow, AnInPlaceOperatorMakesANewVersion) {
  Scene s;
  s.begin("aten::relu", kRelu, {{{100, 256}}}, {{{101, 256}}});
  s.alloc(1024);
  s.kernel();
  s.end();
  s.begin("aten::add_", kAdd, {{{101, 256}}, {{102, 256}}}, {{{101, 256}}});
  const OpId added = s.kernel();
  s.end();
  s.join();
  EXPECT_EQ(s.uses(added), "r2v0 r0v1 w0v2");
}

TEST(Dataflow, AFillDoesNotReadWhatItReplacesButAPartialFillDoes) {
  const std::string schema = "aten::zero_(Tensor(a!) self) -> Tensor(a!)";
  Scene s;
  s.begin("aten::relu", kRelu, {{{100, 256}}}, {{{101, 256}}});
  s.alloc(1024);
  s.kernel();
  s.end();
  s.begin("aten::zero_", schema, {{{101, 256}}}, {{{101, 256}}});
  const OpId whole = s.kernel();
  s.end();
  s.begin("aten::zero_", schema, {{{101, 10}}}, {{{101, 10}}});
  const OpId part = s.kernel();
  s.end();
  s.join();
  EXPECT_EQ(s.uses(whole), "w0v2");
  EXPECT_EQ(s.uses(part), "r0v2 w0v3");
}

TEST(Dataflow, AViewProducesNothingAndSharesItsStorage) {
  Scene s;
  s.begin("aten::relu", kRelu, {{{100, 256}}}, {{{101, 256}}});
  s.alloc(1024);
  s.kernel();
  s.end();
  s.begin("aten::view", "aten::view(Tensor(a) self, int[] size) -> Tensor(a)", {{{101, 256}}}, {{{101, 256}}});
  s.end();
  s.begin("aten::relu", kRelu, {{{101, 256}}}, {{{103, 256}}});
  s.alloc(1024);
  const OpId next = s.kernel();
  s.end();
  s.join();
  EXPECT_EQ(s.uses(next), "r0v1 w1v1");
}

TEST(Dataflow, SeveralKernelsPassTheirWorkOnThroughAWorkspace) {
  Scene s;
  s.begin("aten::conv", "aten::conv(Tensor input, Tensor weight) -> Tensor", {{{100, 256}}, {{101, 256}}},
          {{{102, 512}}});
  const StorageId out = s.alloc(2048);
  const StorageId scratch = s.alloc(4096);
  const OpId first = s.kernel(), second = s.kernel(), third = s.kernel();
  s.free(scratch);
  s.end();
  const JoinReport report = s.join();
  EXPECT_EQ(s.uses(first), "r2v0 r3v0 w1v1");
  EXPECT_EQ(s.uses(second), "r2v0 r3v0 r1v1 w1v2");
  EXPECT_EQ(s.uses(third), "r2v0 r3v0 r1v2 w0v1");
  EXPECT_EQ(s.kind(out), StorageKind::activation);
  EXPECT_EQ(s.kind(scratch), StorageKind::workspace);
  EXPECT_EQ(s.kind(3), StorageKind::parameter);
  EXPECT_EQ(s.label(3), "aten::conv.weight");
  EXPECT_EQ(report.storages.workspaces, 1U);
}

TEST(Dataflow, SeveralKernelsWithoutAWorkspacePassTheOutputOn) {
  Scene s;
  s.begin("aten::relu", kRelu, {{{100, 256}}}, {{{101, 256}}});
  s.alloc(1024);
  const OpId first = s.kernel(), second = s.kernel();
  s.end();
  s.join();
  EXPECT_EQ(s.uses(first), "r1v0 w0v1");
  EXPECT_EQ(s.uses(second), "r1v0 r0v1 w0v2");
}

TEST(Dataflow, EachOutputIsMadeByTheKernelsBeforeTheNextIsAllocated) {
  Scene s;
  s.begin("aten::backward", "aten::backward(Tensor grad, Tensor input) -> (Tensor, Tensor)",
          {{{100, 256}}, {{101, 256}}}, {{{102, 256}}, {{103, 1000}}});
  s.alloc(1024);
  const OpId of_input = s.kernel(Phase::backward);
  s.alloc(4096);
  const OpId of_weight = s.kernel(Phase::backward);
  s.end();
  s.join();
  EXPECT_EQ(s.uses(of_input), "r2v0 r3v0 w0v1");
  EXPECT_EQ(s.uses(of_weight), "r2v0 r3v0 w1v1");
}

TEST(Dataflow, WhatAnOperatorInsideComputedItsCallerDoesNotWriteAgain) {
  Scene s;
  s.begin("aten::backward", "aten::backward(Tensor grad) -> (Tensor, Tensor)", {{{100, 256}}},
          {{{102, 256}}, {{103, 8}}});
  s.alloc(1024);
  const OpId own = s.kernel(Phase::backward);
  s.begin("aten::sum", "aten::sum(Tensor self) -> Tensor", {{{100, 256}}}, {{{103, 8}}});
  s.alloc(512);
  const OpId inner = s.kernel(Phase::backward);
  s.end();
  s.end();
  s.join();
  EXPECT_EQ(s.uses(own), "r2v0 w0v1");
  EXPECT_EQ(s.uses(inner), "r2v0 w1v1");
}

TEST(Dataflow, AnEmptyTensorMadeInsideIsWrittenByItsCaller) {
  Scene s;
  s.begin("aten::mine", "aten::mine(Tensor self) -> Tensor", {{{100, 256}}}, {{{102, 256}}});
  s.begin("aten::empty", "aten::empty(int[] size) -> Tensor", {}, {{{102, 256}}});
  const StorageId out = s.alloc(1024);
  s.end();
  const OpId kernel = s.kernel();
  s.end();
  s.join();
  EXPECT_EQ(s.uses(kernel), "r1v0 w0v1");
  EXPECT_EQ(s.label(out), "aten::empty");
}

TEST(Dataflow, AnOperatorOnListsWorksThroughThemInOrder) {
  Scene s;
  const std::vector<SceneTensor> parameters = {{100, 256}, {101, 256}, {102, 256}, {103, 256}};
  const std::vector<SceneTensor> gradients = {{200, 256}, {201, 256}, {202, 256}, {203, 256}};
  s.begin("aten::_foreach_add_", "aten::_foreach_add_.List(Tensor(a!)[] self, Tensor[] other) -> ()",
          {parameters, gradients});
  const OpId first = s.kernel(Phase::optimizer), second = s.kernel(Phase::optimizer);
  s.end();
  s.join();
  EXPECT_EQ(s.uses(first), "r4v0 r5v0 r0v0 r1v0 w0v1 w1v1");
  EXPECT_EQ(s.uses(second), "r6v0 r7v0 r2v0 r3v0 w2v1 w3v1");
}

TEST(Dataflow, ACollectiveWithoutAnOutputArgumentWorksInPlace) {
  Scene s;
  s.begin("c10d::allreduce_", "c10d::allreduce_(Tensor[] tensors, int timeout) -> Tensor[]", {{{100, 256}}},
          {{{100, 256}}});
  s.begin("nccl:all_reduce", "", {{{100, 256}}});
  const OpId reduce = s.kernel(Phase::backward, OpKind::collective);
  s.end();
  s.end();
  s.begin("c10d::alltoall_base_", "c10d::alltoall_base_(Tensor output, Tensor input) -> int",
          {{{101, 256}}, {{100, 256}}});
  s.begin("nccl:all_to_all", "", {{{100, 256}}});
  const OpId exchange = s.kernel(Phase::backward, OpKind::collective);
  s.end();
  s.end();
  s.join();
  EXPECT_EQ(s.uses(reduce), "r0v0 w0v1");
  EXPECT_EQ(s.uses(exchange), "r0v1 w1v1");
}

TEST(Storages, AnIdThatComesBackMeansAnotherStorage) {
  Scene s;
  for (int round = 0; round < 2; ++round) {
    s.begin("aten::relu", kRelu, {{{100, 256}}}, {{{101, 256}}});
    const StorageId out = s.alloc(1024);
    const OpId made = s.kernel();
    s.end();
    s.begin("aten::relu", kRelu, {{{101, 256}}}, {{{150 + round, 256}}});
    s.alloc(1024);
    s.kernel();
    s.end();
    s.free(out);
    EXPECT_NE(made, kNoOp);
  }
  const JoinReport report = s.join();
  EXPECT_EQ(report.storages.births, 4U);
  EXPECT_EQ(report.storages.claimed, 4U);
  EXPECT_EQ(s.uses(1), "r4v0 w0v1");
  EXPECT_EQ(s.uses(3), "r0v1 w1v1");
  EXPECT_EQ(s.uses(6), "r4v0 w2v1");
  EXPECT_EQ(s.uses(8), "r2v1 w3v1");
  EXPECT_EQ(report.dataflow.left_out_dead, 0U);
}

TEST(Storages, AnAllocationFreedInsideItsOperatorIsNotWhatItReturns) {
  Scene s;
  s.begin("aten::sum", "aten::sum(Tensor self) -> Tensor", {{{100, 256}}}, {{{101, 8}}});
  const StorageId scratch = s.alloc(512);
  s.kernel();
  s.free(scratch);
  const StorageId out = s.alloc(512);
  s.kernel();
  s.end();
  s.join();
  EXPECT_EQ(s.kind(scratch), StorageKind::workspace);
  EXPECT_EQ(s.kind(out), StorageKind::activation);
}

TEST(Storages, ALargeBlockLeftUnsplitIsClaimedASmallOneIsNot) {
  Scene s;
  s.begin("aten::relu", kRelu, {{{100, 256}}}, {{{101, 2'097'152}}});
  const StorageId large = s.alloc(8'388'608 + 1'000'448);
  s.kernel();
  s.end();
  s.begin("aten::relu", kRelu, {{{100, 256}}}, {{{102, 256}}});
  const StorageId small = s.alloc(2048);
  s.kernel();
  s.end();
  const JoinReport report = s.join();
  EXPECT_EQ(s.kind(large), StorageKind::activation);
  EXPECT_EQ(s.kind(small), StorageKind::workspace);
  EXPECT_EQ(report.storages.claimed, 1U);
  EXPECT_EQ(report.storages.births, 2U);
}

TEST(Storages, AFreeOfAnUnknownAddressIsOfTheOlderStorageOfItsSizeThatIsNotUsedAgain) {
  Scene s;
  const StorageId freed = s.older(1024);
  s.begin("aten::relu", kRelu, {{{100, 256}}}, {{{101, 256}}});
  s.alloc(1024);
  const OpId first = s.kernel();
  s.end();
  s.free(freed);
  s.begin("aten::relu", kRelu, {{{105, 256}}}, {{{102, 256}}});
  s.alloc(1024);
  const OpId second = s.kernel();
  s.end();
  const JoinReport report = s.join();
  EXPECT_EQ(report.storages.preexisting_matched, 1U);
  EXPECT_EQ(s.uses(first), "r0v0 w1v1");   // storage 0 is the freed one
  EXPECT_EQ(s.uses(second), "r3v0 w2v1");  // used after the free: another
  EXPECT_EQ(s.imported.trace.untracked_bytes, 1'000'000 - 1024);
}

TEST(Storages, ReadingWhatTheCaptureHasFreedIsLeftOutAndCounted) {
  Scene s;
  s.begin("aten::relu", kRelu, {{{100, 256}}}, {{{101, 256}}});
  const StorageId out = s.alloc(1024);
  s.kernel();
  s.end();
  s.free(out);
  s.begin("aten::relu", kRelu, {{{101, 256}}}, {{{102, 256}}});
  s.alloc(1024);
  const OpId late = s.kernel();
  s.end();
  const JoinReport report = s.join();
  EXPECT_EQ(report.dataflow.left_out_dead, 1U);
  EXPECT_EQ(s.uses(late), "w1v1");
}

TEST(Storages, ReadingWhatNobodyWroteIsLeftOutAndCounted) {
  Scene s;
  s.begin("aten::empty", "aten::empty(int[] size) -> Tensor", {}, {{{101, 256}}});
  s.alloc(1024);
  s.end();
  s.begin("aten::relu", kRelu, {{{101, 256}}}, {{{102, 256}}});
  s.alloc(1024);
  const OpId kernel = s.kernel();
  s.end();
  const JoinReport report = s.join();
  EXPECT_EQ(report.dataflow.left_out_unwritten, 1U);
  EXPECT_EQ(s.uses(kernel), "w1v1");
}

TEST(Storages, OlderStoragesNeverMakeUntrackedBytesNegative) {
  Scene s;
  s.imported.trace.untracked_bytes = 1000;
  s.begin("aten::relu", kRelu, {{{100, 256}}}, {{{101, 256}}});
  s.alloc(1024);
  s.kernel();
  s.end();
  const JoinReport report = s.join();
  EXPECT_EQ(s.imported.trace.untracked_bytes, 0);
  EXPECT_EQ(report.storages.overdrawn_bytes, 24);
}

// As an ExecutionTrace alone has them: from before the first use to behind the last.
TEST(Storages, WithoutMemoryEventsStoragesLiveAsLongAsTheyAreUsed) {
  Scene s(false);
  s.begin("aten::relu", kRelu, {{{100, 256}}}, {{{101, 256}}});
  s.kernel();
  s.end();
  s.begin("aten::relu", kRelu, {{{101, 256}}}, {{{102, 256}}});
  s.kernel();
  s.end();
  const std::vector<std::uint32_t> operators = s.imported.operator_of_op;
  const JoinReport report = s.join();
  const Trace& t = s.imported.trace;
  std::vector<OpId> kernels;
  for (OpId id = 0; id < t.ops.size(); ++id)
    if (t.ops[id].kind == OpKind::kernel) kernels.push_back(id);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(s.uses(kernels[0]), "r0v0 w1v1");
  EXPECT_EQ(s.uses(kernels[1]), "r1v1 w2v1");
  EXPECT_TRUE(t.knowledge.allocations);
  EXPECT_EQ(report.lives.made, 2u);
  EXPECT_EQ(report.lives.freed, 2u);
  EXPECT_EQ(t.ops[kernels[0] - 1].kind, OpKind::alloc);
  EXPECT_EQ(t.ops[kernels[1] + 1].kind, OpKind::free);
  EXPECT_TRUE(has_derived_lives(t));
  EXPECT_TRUE(std::ranges::all_of(t.ops, [](const Op& op) {
    return is_derived_life(op) == (op.kind == OpKind::alloc || op.kind == OpKind::free);
  }));
  // What stands beside the ops follows them.
  ASSERT_EQ(s.imported.operator_of_op.size(), t.ops.size());
  std::vector<std::uint32_t> kept;
  for (OpId id = 0; id < t.ops.size(); ++id)
    if (t.ops[id].kind != OpKind::alloc && t.ops[id].kind != OpKind::free)
      kept.push_back(s.imported.operator_of_op[id]);
  EXPECT_EQ(kept, operators);
}

// Weight 100 is used forward, its gradient 101 made backward, both met by the optimizer with state 102.
TEST(Kinds, FollowFromWhoReadsAndWritesInWhichPhase) {
  Scene s;
  const StorageId old_gradient = s.older(2048);
  s.begin("Optimizer.zero_grad#SGD.zero_grad");
  s.free(old_gradient);
  s.end();
  s.begin("aten::mul", "aten::mul(Tensor self, Tensor other) -> Tensor", {{{90, 256}}, {{100, 256}}}, {{{91, 256}}});
  const StorageId activation = s.alloc(1024);
  s.kernel(Phase::forward);
  s.end();
  s.begin("aten::mul", "aten::mul(Tensor self, Tensor other) -> Tensor", {{{91, 256}}, {{90, 256}}}, {{{101, 256}}});
  const StorageId gradient = s.alloc(1024);
  s.kernel(Phase::backward);
  s.end();
  s.begin("aten::_foreach_add_", "aten::_foreach_add_.List(Tensor(a!)[] self, Tensor[] other) -> ()",
          {{{102, 256}}, {{101, 256}}});
  s.kernel(Phase::optimizer);
  s.end();
  s.begin("aten::_foreach_add_", "aten::_foreach_add_.List(Tensor(a!)[] self, Tensor[] other) -> ()",
          {{{100, 256}}, {{102, 256}}});
  s.kernel(Phase::optimizer);
  s.end();
  s.join();
  EXPECT_EQ(s.kind(old_gradient), StorageKind::gradient);
  EXPECT_EQ(s.kind(activation), StorageKind::activation);
  EXPECT_EQ(s.kind(gradient), StorageKind::gradient);
  EXPECT_EQ(s.kind(3), StorageKind::input);
  EXPECT_EQ(s.kind(4), StorageKind::parameter);
  EXPECT_EQ(s.kind(5), StorageKind::optimizer_state);
  EXPECT_EQ(s.label(5), "optimizer state of " + s.label(4));
  EXPECT_EQ(s.label(gradient), "gradient of " + s.label(4));
}

TEST(Join, FewerThanNineTenthsIsAnErrorWithTheFigures) {
  Scene s;
  for (int i = 0; i < 10; ++i) {
    s.begin("aten::relu", kRelu, {{{100, 256}}}, {{{101 + i, 256}}});
    s.end();
  }
  s.execution.nodes[3].name = s.execution.nodes[7].name = s.execution.strings.intern("aten::gelu");
  try {
    s.join();
    FAIL() << "joined";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("scene.et.json: 8 of 10 operators (80.0 %)"), std::string::npos)
        << error.what();
  }
}

TEST(Join, AnExecutionTraceOfAnotherProcessIsRefused) {
  Scene s;
  s.begin("aten::relu", kRelu, {{{100, 256}}}, {{{101, 256}}});
  s.end();
  for (CapturedThread& thread : s.capture.threads) thread.process = 4711;
  s.execution.process = 4712;
  try {
    s.join();
    FAIL() << "joined";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("process 4712"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("another rank, or of another run"), std::string::npos) << error.what();
  }
  s.execution.process = 4711;
  EXPECT_NO_THROW(s.join());
}

TEST(Join, AnEmptyExecutionTraceIsRefused) {
  Scene s;
  s.begin("aten::relu", kRelu);
  s.end();
  s.execution.nodes.clear();
  EXPECT_THROW(s.join(), InputError);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
