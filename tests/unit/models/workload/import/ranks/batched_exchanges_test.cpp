// Captured batches of sends and receives: does each pair of ranks wait for itself, and do captured times stay?
#include "models/workload/import/ranks/batched_exchanges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "models/workload/import/kineto/kineto_step.h"
#include "models/workload/import/ranks/collective_match.h"
#include "models/workload/import/ranks/rank_join.h"
#include "sim/engine/simulation.h"
#include "sim/trace/ranks.h"
#include "sim/trace/trace_check.h"
#include "tests/support/batch_capture.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Time us(std::int64_t n) { return microseconds(n); }

ImportedStep joined(const std::vector<BatchCapture>& captures) {
  const ScratchFolder folder;
  std::vector<ImportedStep> steps;
  for (std::size_t i = 0; i < captures.size(); ++i) {
    const std::string name = "rank" + std::to_string(i) + ".json";
    write_content(folder / name, captures[i].text());
    steps.push_back(import_kineto(folder / name, ImportSettings{}));
  }
  return joined_steps(std::move(steps));
}

SimulationResult replay(const Trace& trace) {
  EXPECT_TRUE(check(trace).empty());
  SimulationOptions options;
  options.allocator = "ideal";
  return simulate(trace, test_machine(), options);
}

std::vector<OpId> ops_of(const Trace& trace, std::uint32_t rank, OpKind kind) {
  std::vector<OpId> found;
  for (OpId id = 0; id < trace.ops.size(); ++id)
    if (trace.ops[id].kind == kind && trace.rank_table[rank_of(trace, trace.ops[id])].number == rank)
      found.push_back(id);
  return found;
}

// When the rank's k-th kernel of its own begins: behind the batch that it waited for.
Time start_of_kernel(const ImportedStep& step, const SimulationResult& result, std::uint32_t rank, std::size_t k) {
  return result.records[ops_of(step.trace, rank, OpKind::kernel).at(k)].start;
}

// What the k-th kernel of a rank takes from now on.
void set_kernel(ImportedStep& step, std::uint32_t rank, std::size_t k, Duration duration) {
  step.trace.ops[ops_of(step.trace, rank, OpKind::kernel).at(k)].duration = duration;
}

const Decision* decision(const ImportedStep& step, const std::string& subject) {
  const auto found = std::find_if(step.decisions.begin(), step.decisions.end(),
                                  [&](const Decision& d) { return d.subject == subject; });
  return found == step.decisions.end() ? nullptr : &*found;
}

std::set<std::uint32_t> rendezvous_of_sends(const Trace& trace) {
  std::set<std::uint32_t> numbers;
  for (const Op& op : trace.ops)
    if (op.kind == OpKind::collective && op.collective == CollectiveKind::send_receive && op.target != kNoRendezvous)
      numbers.insert(op.target);
  return numbers;
}

// Three stages: the first arrives at 40 us, the middle one at 100, the last at 500; the exchanges take 20 and 30 us, so
// that the kernels end at 120, 530 and 530. Each computes before and behind, 30 us after the batch; with a gap of 5 us
// between a kernel that is ready and its launch. `clock`: an all-reduce at the end.
std::vector<BatchCapture> pipeline(bool clock = true) {
  std::vector<BatchCapture> stages;
  const int starts[] = {40, 100, 500}, ends[] = {120, 530, 530};
  const std::vector<std::vector<BatchMessage>> messages{
      {send_to(1), receive_from(1, 500)},
      {send_to(0, 500), receive_from(0), send_to(2), receive_from(2, 500)},
      {receive_from(1), send_to(1, 500)}};
  for (int r = 0; r < 3; ++r) {
    BatchCapture stage(r, 3);
    stage.compute(10, starts[r] - 20);
    stage.batch(messages[static_cast<std::size_t>(r)], starts[r], ends[r]);
    stage.compute(ends[r] + 30, ends[r] + 40);
    if (clock) stage.all_reduce(1000, 1010);
    stages.push_back(std::move(stage));
  }
  return stages;
}

void expect_pipeline_as_captured(const ImportedStep& step) {
  EXPECT_EQ(rendezvous_of_sends(step.trace).size(), 2u);
  EXPECT_EQ(ops_of(step.trace, 0, OpKind::collective).size(), ops_of(step.trace, 2, OpKind::collective).size());
  EXPECT_EQ(ops_of(step.trace, 1, OpKind::collective).size(), ops_of(step.trace, 0, OpKind::collective).size() + 1);
  const SimulationResult result = replay(step.trace);
  EXPECT_EQ(start_of_kernel(step, result, 0, 1), us(150));
  EXPECT_EQ(start_of_kernel(step, result, 1, 1), us(560));
  EXPECT_EQ(start_of_kernel(step, result, 2, 1), us(560));
}

TEST(BatchedExchanges, AMiddleStageWaitsForBothAndEachNeighbourForItAlone) {
  ImportedStep step = joined(pipeline());
  expect_pipeline_as_captured(step);
  const Decision* told = decision(step, "batches of sends and receives");
  ASSERT_NE(told, nullptr);
  EXPECT_EQ(told->covered, 8u);
  EXPECT_EQ(told->of, 8u);
  EXPECT_EQ(told->kind, NoteKind::counted) << told->sentence;
  EXPECT_NE(told->sentence.find("3 kernels are batches of 8"), std::string::npos) << told->sentence;
  // The first stage comes 660 us later: the middle one waits for it, the last does not.
  set_kernel(step, 0, 0, us(10) + us(660));
  SimulationResult result = replay(step.trace);
  EXPECT_EQ(start_of_kernel(step, result, 0, 1), us(40 + 660 + 20 + 30));
  EXPECT_EQ(start_of_kernel(step, result, 1, 1), us(40 + 660 + 20 + 30));
  EXPECT_EQ(start_of_kernel(step, result, 2, 1), us(560));
  // The middle one comes at 800: both wait for it, and go on after their own exchange.
  step = joined(pipeline());
  set_kernel(step, 1, 0, us(70) + us(700));
  result = replay(step.trace);
  EXPECT_EQ(start_of_kernel(step, result, 0, 1), us(800 + 20 + 30));
  EXPECT_EQ(start_of_kernel(step, result, 1, 1), us(800 + 30 + 30));
  EXPECT_EQ(start_of_kernel(step, result, 2, 1), us(800 + 30 + 30));
}

// Nothing ends together then; the hosts' clocks say how times compare.
TEST(BatchedExchanges, APipelineWithoutOtherCollectivesJoins) { expect_pipeline_as_captured(joined(pipeline(false))); }

TEST(BatchedExchanges, WithAnAbsentNeighbourTheWaitForItStays) {
  std::vector<BatchCapture> stages = pipeline();
  stages.pop_back();
  ImportedStep step = joined(stages);
  EXPECT_EQ(rendezvous_of_sends(step.trace).size(), 1u);
  SimulationResult result = replay(step.trace);
  EXPECT_EQ(start_of_kernel(step, result, 0, 1), us(150));
  EXPECT_EQ(start_of_kernel(step, result, 1, 1), us(560));
  EXPECT_EQ(decision(step, "batches of sends and receives")->covered, 4u);
  EXPECT_EQ(decision(step, "batches of sends and receives")->kind, NoteKind::counted) << "the peer is absent";
}

// Context parallelism: each sends to the next and receives from the one before; 15 us each.
TEST(BatchedExchanges, InARingEachWaitsForItsNeighboursAlone) {
  const int starts[] = {100, 110, 120, 200}, ends[] = {215, 135, 215, 215};
  std::vector<BatchCapture> ring;
  for (int r = 0; r < 4; ++r) {
    BatchCapture rank(r, 4);
    rank.compute(10, 80);
    rank.batch({send_to((r + 1) % 4), receive_from((r + 3) % 4)}, starts[r], ends[r]);
    rank.compute(ends[r] + 30, ends[r] + 40);
    rank.all_reduce(1000, 1010);
    ring.push_back(std::move(rank));
  }
  ImportedStep step = joined(ring);
  EXPECT_EQ(rendezvous_of_sends(step.trace).size(), 4u);
  SimulationResult result = replay(step.trace);
  for (std::uint32_t r = 0; r < 4; ++r) EXPECT_EQ(start_of_kernel(step, result, r, 1), us(ends[r] + 30)) << r;
  // Rank 1 comes 500 us later, at 610. Its kernel says of the exchange with rank 0, for which it came last, only that
  // it was over after 25 us.
  set_kernel(step, 1, 0, us(570));
  result = replay(step.trace);
  EXPECT_EQ(start_of_kernel(step, result, 0, 1), us(610 + 25 + 30));
  EXPECT_EQ(start_of_kernel(step, result, 1, 1), us(610 + 25 + 30));
  EXPECT_EQ(start_of_kernel(step, result, 2, 1), us(610 + 15 + 30));
  EXPECT_EQ(start_of_kernel(step, result, 3, 1), us(215 + 30));
}

TEST(BatchedExchanges, WithOnePeerItStaysOneKernelOnItsStream) {
  std::vector<BatchCapture> pair;
  for (int r = 0; r < 2; ++r) {
    BatchCapture rank(r, 3);  // the third is absent
    rank.batch({send_to(1 - r), receive_from(1 - r)}, r == 0 ? 50 : 90, 100);
    rank.compute(130, 140);
    rank.batch({receive_from(1 - r), receive_from(1 - r, 5), send_to(1 - r), send_to(1 - r, 5)}, 200, 230);
    rank.all_reduce(1000, 1010);
    pair.push_back(std::move(rank));
  }
  const ImportedStep step = joined(pair);
  EXPECT_EQ(step.trace.streams.size(), 4u);
  EXPECT_EQ(ops_of(step.trace, 0, OpKind::collective).size(), 3u);
  EXPECT_EQ(rendezvous_of_sends(step.trace).size(), 2u);
  const OpId first = ops_of(step.trace, 0, OpKind::collective).front();
  EXPECT_EQ(step.trace.ops[first].duration, us(10));
  EXPECT_EQ(replay(step.trace).records[first].end, us(100));
}

// PyTorch's 1F1B schedule: a stage sends forward and receives backward in one batch, of which the next stage receives
// the one in a batch of its own, and sends the other with its next receive.
TEST(BatchedExchanges, SidesMayBatchTheSameMessagesDifferently) {
  BatchCapture stage0(0, 2), stage1(1, 2);
  const BatchMessage activation0 = send_to(1, 100), activation1 = receive_from(0, 100);
  const BatchMessage gradient0 = receive_from(1, 100), gradient1 = send_to(0, 100);
  stage0.batch({activation0, gradient0}, 30, 200);
  stage1.batch({activation1}, 25, 50);
  stage1.compute(80, 120);
  stage1.batch({gradient1, activation1}, 150, 290);
  stage0.compute(215, 225);
  stage0.batch({activation0, gradient0}, 260, 400);
  stage1.compute(310, 340);
  stage1.batch({gradient1}, 370, 400);
  stage0.compute(430, 440);
  stage1.compute(430, 440);
  stage0.all_reduce(1000, 1010);
  stage1.all_reduce(1000, 1010);
  ImportedStep step = joined({stage0, stage1});
  EXPECT_EQ(rendezvous_of_sends(step.trace).size(), 4u);
  SimulationResult result = replay(step.trace);
  EXPECT_EQ(start_of_kernel(step, result, 1, 0), us(80));
  EXPECT_EQ(start_of_kernel(step, result, 0, 0), us(215));
  EXPECT_EQ(start_of_kernel(step, result, 1, 1), us(310));
  EXPECT_EQ(start_of_kernel(step, result, 0, 1), us(430));
  // Stage 1 computes 100 us longer between: its gradient comes so much later, the first activation does not.
  set_kernel(step, 1, 0, us(140));
  result = replay(step.trace);
  EXPECT_EQ(start_of_kernel(step, result, 1, 0), us(80));
  EXPECT_EQ(start_of_kernel(step, result, 0, 0), us(315));
}

// Sends that lie in a buffer until the other side comes, one behind: nobody waits, and no one is put to another's.
TEST(BatchedExchanges, BufferedSendsAreNotPutToTheReceivesBeforeTheirs) {
  BatchCapture sender(0, 2), receiver(1, 2);
  for (int k = 0; k < 4; ++k) {
    sender.batch({send_to(1)}, 100 + 300 * k, 110 + 300 * k);
    receiver.batch({receive_from(0)}, 390 + 300 * k, 410 + 300 * k);
  }
  sender.all_reduce(2000, 2010);
  receiver.all_reduce(2000, 2010);
  const ImportedStep step = joined({sender, receiver});
  EXPECT_TRUE(rendezvous_of_sends(step.trace).empty());
  EXPECT_NE(decision(step, "collectives matched")->sentence.find("4 matches were dropped"), std::string::npos)
      << decision(step, "collectives matched")->sentence;
}

TEST(BatchedExchanges, SendsAreMatchedInOrderAndNeverReceivedBefore) {
  const auto item = [](std::int64_t at, std::int64_t elements = 8) {
    return MatchItem{.kind = CollectiveKind::send_receive, .elements = elements, .start = us(at), .end = us(at + 10)};
  };
  const auto pairs = [](const std::vector<MatchItem>& sent, const std::vector<MatchItem>& received) {
    std::string text;
    for (const ItemPair& pair : match_sends(sent, received))
      text += std::to_string(pair.a) + "-" + std::to_string(pair.b) + " ";
    return text;
  };
  EXPECT_EQ(pairs({item(100), item(300), item(500)}, {item(290), item(490), item(690)}), "0-0 1-1 2-2 ");
  EXPECT_EQ(pairs({item(300), item(500)}, {item(110), item(310), item(510)}), "0-1 1-2 ") << "one was sent before";
  EXPECT_EQ(pairs({item(100), item(300), item(500)}, {item(310), item(510)}), "1-0 2-1 ") << "one was received before";
  EXPECT_EQ(pairs({item(100, 8), item(300, 9)}, {item(110, 9)}), "") << "of 9 elements none is sent by then";
  EXPECT_EQ(pairs({item(100, 8), item(300, 9)}, {item(310, 9)}), "1-0 ");
}

TEST(BatchedExchanges, WhatTheSidesDisagreeInIsToldAndKeepsItsTime) {
  std::vector<BatchCapture> stages = pipeline();
  BatchCapture other(2, 3);
  other.compute(10, 480);
  other.batch({receive_from(1, 600), send_to(1, 500)}, 500, 530);  // rank 1 sends 1000
  other.compute(560, 570);
  other.all_reduce(1000, 1010);
  stages[2] = other;
  const ImportedStep step = joined(stages);
  const Decision* told = decision(step, "batches of sends and receives");
  ASSERT_NE(told, nullptr);
  EXPECT_EQ(told->covered, 6u);
  EXPECT_EQ(told->of, 8u);
  EXPECT_EQ(told->kind, NoteKind::missing);
  EXPECT_NE(told->sentence.find("Of 2 the peer was recorded at the time and has none like it (the first: rank 1 sends "
                                "1000 elements of bf16 to rank 2"),
            std::string::npos)
      << told->sentence;
  EXPECT_EQ(start_of_kernel(step, replay(step.trace), 1, 1), us(560));
}

// Batches that name nobody, in a group that has nothing else.
TEST(BatchedExchanges, WithoutPeersTheyStandAloneInTheirGroup) {
  std::vector<BatchCapture> ranks;
  for (int r = 0; r < 3; ++r) {
    BatchCapture rank(r, 3);
    rank.batch({{true, (r + 1) % 3, 9, "pipe", "-"}}, 50, 90);
    rank.all_reduce(1000, 1010);
    ranks.push_back(std::move(rank));
  }
  const ImportedStep step = joined(ranks);
  EXPECT_EQ(step.trace.groups.size(), 2u);
  EXPECT_EQ(decision(step, "batches of sends and receives"), nullptr);
  EXPECT_NE(decision(step, "collectives matched")
                ->sentence.find("(3 of them are batches of sends and receives that do "
                                "not say with whom)"),
            std::string::npos)
      << decision(step, "collectives matched")->sentence;
}

TEST(BatchedExchanges, ProgramsAreRenumberedAroundThem) {
  // A hand-over to another thread from the batch's op, and a source: both go with it.
  TraceBuilder builder;
  builder.trace().place("hbm");
  builder.trace().knowledge.timing = true;
  builder.add_thread("main");
  builder.add_thread("autograd");
  builder.add_stream("stream 20", StreamRole::communication);
  const StorageId storage = builder.add_storage(64, StorageKind::activation, "hbm", "", true);
  Op mark;
  builder.append(mark);
  Op batch;
  batch.kind = OpKind::collective;
  batch.host_cost = us(5);
  batch.duration = us(100);
  const Use uses[] = {{storage, 0, Access::read}, {storage, 1, Access::write}};
  const OpId op = builder.append(batch, uses);
  Op hand_over;
  hand_over.kind = OpKind::hand_over;
  hand_over.thread = 1;
  hand_over.target = op;
  builder.append(hand_over);
  builder.trace().steps.push_back({"step", 0, 3});
  const Trace trace = with_rendezvous(
      std::move(builder).finish(),
      {{op, {{.rendezvous = 0, .bytes = 10, .duration = us(20)}, {.rendezvous = 1, .duration = us(30)}}}});
  EXPECT_TRUE(check(trace).empty());
  ASSERT_EQ(trace.ops.size(), 8u) << "record, wait, two ops, record, wait";
  EXPECT_EQ(trace.steps[0].last, 8u);
  EXPECT_EQ(trace.ops[7].target, 6u);
  EXPECT_EQ(trace.ops[3].use_count, 2u);
  EXPECT_EQ(trace.ops[4].use_count, 0u);
  EXPECT_EQ(trace.ops[3].host_cost, us(5));
  EXPECT_EQ(trace.ops[4].host_cost, Duration{});
  EXPECT_NE(trace.ops[3].stream, trace.ops[4].stream);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
