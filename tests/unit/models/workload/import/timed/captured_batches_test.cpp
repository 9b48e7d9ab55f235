// Which sends and receives does a kernel stand for, and is nothing concluded where it is not certain?
#include "models/workload/import/timed/captured_batches.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/workload/import/execution_trace/capture_rank.h"
#include "models/workload/import/kineto/kineto_reader.h"
#include "models/workload/import/timed/timed_import.h"
#include "sim/engine/simulation.h"
#include "sim/trace/trace_check.h"
#include "tests/support/batch_capture.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Read {
  TimedCapture file;
  ImportedTrace imported;
  RankCapture rank;
};

Read read(const BatchCapture& capture) {
  const ScratchFolder folder;
  write_content(folder / "rank.json", capture.text());
  Read r{read_kineto(folder / "rank.json"), {}, {}};
  r.imported = import_timed_capture(r.file);
  r.rank = rank_of_capture(r.imported, r.file);
  return r;
}

std::vector<Op> collectives(const Trace& trace) {
  std::vector<Op> found;
  std::copy_if(trace.ops.begin(), trace.ops.end(), std::back_inserter(found),
               [](const Op& op) { return op.kind == OpKind::collective; });
  return found;
}

TEST(CapturedBatches, AKernelStandsForTheSendsAndReceivesBeforeIt) {
  BatchCapture capture(1, 4);
  capture.batch({send_to(2, 300), receive_from(0, 500), send_to(0, 400), receive_from(1)}, 50, 90);
  capture.batch({receive_from(2, 7)}, 120, 150);
  const Read r = read(capture);
  ASSERT_EQ(r.imported.batches.size(), 2u);
  EXPECT_EQ(r.imported.batches[0].messages.size(), 4u);
  ASSERT_EQ(r.rank.collectives.size(), 4u) << "what a rank sends itself meets nobody";
  const auto expect = [&](std::size_t i, std::int64_t source, std::int64_t destination, std::int64_t elements) {
    const CapturedCollective& c = r.rank.collectives[i];
    EXPECT_EQ(c.kind, CollectiveKind::send_receive);
    EXPECT_EQ(c.source, source) << i;
    EXPECT_EQ(c.destination, destination) << i;
    EXPECT_EQ(c.elements, elements) << i;
    EXPECT_EQ(c.type, DataType::bf16);
    EXPECT_TRUE(c.batched);
    EXPECT_EQ(c.several_peers, i < 3);
    EXPECT_EQ(r.rank.groups[c.group].members, (std::vector<std::uint32_t>{0, 1, 2, 3}));
  };
  expect(0, 1, 2, 300);
  expect(1, 0, 1, 500);
  expect(2, 1, 0, 400);
  expect(3, 2, 1, 7);
  EXPECT_EQ(r.rank.collectives[0].op, r.rank.collectives[2].op);
  EXPECT_NE(r.rank.collectives[0].op, r.rank.collectives[3].op);
}

TEST(CapturedBatches, ARankAloneReplaysAsItWasCaptured) {
  BatchCapture capture(1, 3);
  capture.compute(20, 60);
  capture.batch({send_to(0), receive_from(0), send_to(2), receive_from(2, 250)}, 100, 530);
  capture.compute(560, 570);
  const Read r = read(capture);
  const std::vector<Op> found = collectives(r.imported.trace);
  ASSERT_EQ(found.size(), 1u) << "one kernel, one op: alone it waits for nobody";
  EXPECT_EQ(found[0].duration, microseconds(430));
  EXPECT_EQ(found[0].bytes, 4000) << "2 x 1000 elements of 2 bytes sent, 1250 received";
  EXPECT_EQ(r.imported.trace.streams.size(), 2u);
  SimulationOptions options;
  options.allocator = "ideal";
  EXPECT_EQ(simulate(r.imported.trace, test_machine(), options).end, r.imported.captured.total);
}

TEST(CapturedBatches, KernelsWithARecordOfTheirOwnAreNone) {
  BatchCapture capture(0, 3);
  // One send that launches by itself.
  capture.record(send_to(1), 30, 30);
  capture.launch("ncclDevKernel_SendRecv(...)", 20, 50, 70, "cudaLaunchKernelExC");
  capture.synchronize(62, 70);
  capture.all_reduce(100, 130);
  // And one whose kernel the file lacks, before a batch.
  capture.record(send_to(1), 140, 30);
  const Read without = read(capture);
  EXPECT_TRUE(without.imported.batches.empty());
  ASSERT_EQ(without.rank.collectives.size(), 2u);
  EXPECT_EQ(without.rank.collectives[0].destination, 1);
  EXPECT_FALSE(without.rank.collectives[0].batched);
}

TEST(CapturedBatches, NothingIsConcludedOfMixtures) {
  // Of two groups; with another collective among them; and of a peer that nobody names.
  const std::vector<std::vector<BatchMessage>> batches{
      {send_to(1), {false, 2, 1000, "other"}}, {send_to(1), {true, 2, 1000, "0", "-"}}, {{true, 1, 9, "0", "-7"}}};
  for (const std::vector<BatchMessage>& batch : batches) {
    BatchCapture capture(0, 3);
    capture.batch(batch, 50, 90);
    const Read r = read(capture);
    ASSERT_EQ(r.rank.collectives.size(), 1u);
    EXPECT_EQ(r.rank.collectives[0].destination, -1);
    EXPECT_FALSE(r.rank.collectives[0].batched);
  }
}

TEST(CapturedBatches, AnotherCollectiveEndsWhatCameBefore) {
  BatchCapture capture(0, 3);
  capture.record(send_to(2), 10, 1);  // launches nothing
  capture.all_reduce(50, 60);
  capture.batch({send_to(1)}, 100, 120);
  const Read r = read(capture);
  ASSERT_EQ(r.imported.batches.size(), 1u);
  ASSERT_EQ(r.imported.batches[0].messages.size(), 1u);
  EXPECT_EQ(r.rank.collectives.back().destination, 1);
}

// RCCL's kernels, and NCCL's of some versions, do not say what they do.
TEST(CapturedBatches, AKernelWithoutAKindIsToldByItsRecords) {
  BatchCapture capture(0, 3);
  capture.batch({send_to(1), receive_from(2)}, 50, 90, "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)");
  capture.batch({send_to(1)}, 120, 150, "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
  const Read r = read(capture);
  ASSERT_EQ(r.imported.batches.size(), 1u);
  const std::vector<Op> found = collectives(r.imported.trace);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].collective, CollectiveKind::send_receive);
  EXPECT_EQ(found[1].collective, CollectiveKind::all_gather);
}

// Before PyTorch 2.5 the peer, a number within the group, stands in the ExecutionTrace alone.
TEST(CapturedBatches, AnExecutionTraceSaysThePeers) {
  const auto node = [](int number, int peer, const std::string& name) {
    return "{\"id\":" + std::to_string(10 + number) +
           R"(,"name":"record_param_comms","ctrl_deps":2,"inputs":{"values":[)" +
           R"([[18,19,0,24,4,"cuda:0"]],3,["5","pipe"],)" + std::to_string(peer) + ",\"" + name +
           R"(",[],[],2,4,3],"shapes":[[[4,6]],[],[[],[]],[],[],[],[],[],[],[]],"types":["GenericList[Tensor(float)]",)" +
           R"("Int","Tuple[String,String]","Int","String","GenericList[]","GenericList[]","Int","Int","Int"]},)" +
           R"("outputs":{"values":[],"shapes":[],"types":[]},"attrs":[{"name":"rf_id","type":"uint64","value":)" +
           std::to_string(number) + R"(},{"name":"tid","type":"uint64","value":1}]})";
  };
  BatchCapture capture(2, 12);
  capture.batch({{true, 1, 300, "5", "-"}, {false, 2, 500, "5", "-"}}, 50, 90);
  const Read alone = read(capture);
  EXPECT_EQ(alone.rank.collectives.at(0).destination, -1);
  const ExecutionTrace execution = parse_execution_trace("{\"schema\":\"1.1.1-chakra.0.0.4\",\"pid\":7,\"nodes\":[\n" +
                                                             node(1, 1, "send") + ",\n" + node(2, 2, "recv") + "\n]}",
                                                         "et.json");
  const OperatorMatch match = match_operators(alone.file, execution);
  const RankCapture rank = rank_of_capture(alone.imported, alone.file, &execution, &match);
  ASSERT_EQ(rank.collectives.size(), 2u);
  EXPECT_EQ(rank.collectives[0].destination, 6);
  EXPECT_EQ(rank.collectives[1].source, 10);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
