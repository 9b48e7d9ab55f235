// A batch of sends to two peers: when does each of the three go on?
#include "sim/trace/batched_sends.h"

#include <gtest/gtest.h>

#include "sim/engine/simulation.h"
#include "sim/trace/trace_check.h"
#include "tests/support/rank_program.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Duration us(std::int64_t n) { return microseconds(n); }

// The middle one of three pipeline stages exchanges with both neighbours in one batch, which come at `before` and
// `after`, itself at 100 us; 20 us with the one before, 30 us with the one behind. Then each computes for 10 us.
struct Stages {
  Trace trace;
  SimulationResult result;
  std::vector<OpId> batch, first, last;
  OpId next_of_middle = kNoOp, next_of_first = kNoOp, next_of_last = kNoOp;
};

Stages three_stages(Duration before, Duration after, Duration event_latency = {}) {
  RankAuthor first(0), middle(1), last(2);
  const std::uint16_t beside[] = {middle.builder().add_stream("to the next stage", StreamRole::communication)};
  Op op;
  op.stream = 1;
  const PeerExchange with_first{.rendezvous = 4, .group = 0, .duration = us(20)};
  const PeerExchange with_last{.rendezvous = 5, .group = 1, .duration = us(30)};
  Stages s;
  for (RankAuthor* author : {&first, &middle, &last}) {
    author->trace().groups = {{"0-1", 2, {0, 1}}, {"1-2", 2, {1, 2}}};
    author->trace().constants.event_latency = event_latency;
    author->kernel(author == &first ? before : author == &last ? after : us(100));
    author->order(0, 1);
  }
  s.first = append_batched_sends(first.builder(), op, std::vector{with_first}, {});
  s.batch = append_batched_sends(middle.builder(), op, std::vector{with_first, with_last}, beside);
  s.last = append_batched_sends(last.builder(), op, std::vector{with_last}, {});
  std::vector<OpId> next;
  std::vector<RankProgram> ranks;
  for (RankAuthor* author : {&first, &middle, &last}) {
    author->order(1, 0);
    next.push_back(author->kernel(us(10)));
    ranks.push_back(std::move(*author).finish());
  }
  const auto ops_of_first = static_cast<OpId>(ranks[0].trace.ops.size());
  const auto ops_before_last = static_cast<OpId>(ops_of_first + ranks[1].trace.ops.size());
  s.next_of_first = next[0];
  s.next_of_middle = next[1] + ops_of_first;
  s.next_of_last = next[2] + ops_before_last;
  for (OpId& id : s.batch) id += ops_of_first;
  s.trace = joined_ranks(std::move(ranks));
  s.result = simulate(s.trace, test_machine(), {});
  return s;
}

TEST(BatchedSends, EachPeerGoesOnAfterItsOwnExchange) {
  const Stages s = three_stages(us(40), us(500));
  EXPECT_TRUE(check(s.trace).empty());
  EXPECT_EQ(s.result.records[s.next_of_first].start, us(120)) << "it waits for the middle one, not for the last";
  EXPECT_EQ(s.result.records[s.next_of_last].start, us(530));
  EXPECT_EQ(s.result.records[s.next_of_middle].start, us(530)) << "the batch ends with its last exchange";
  for (const OpId id : s.batch) EXPECT_EQ(s.result.records[id].start, us(100)) << "all begin when the batch may";
}

TEST(BatchedSends, TheOrderOfPeersDecidesNothing) {
  const Stages early = three_stages(us(500), us(40));
  EXPECT_EQ(early.result.records[early.next_of_last].start, us(130));
  EXPECT_EQ(early.result.records[early.next_of_first].start, us(520));
  EXPECT_EQ(early.result.records[early.next_of_middle].start, us(520));
}

TEST(BatchedSends, WithNobodyToWaitForTheLongestDecides) {
  const Stages s = three_stages(us(40), us(40));
  EXPECT_EQ(s.result.records[s.next_of_first].start, us(120));
  EXPECT_EQ(s.result.records[s.next_of_last].start, us(130));
  EXPECT_EQ(s.result.records[s.next_of_middle].start, us(130)) << "side by side: 30 us, not 20 + 30";
}

TEST(BatchedSends, OfEventsTheLatencyIsPaid) {
  const Stages s = three_stages(us(40), us(40), us(2));
  EXPECT_EQ(s.result.records[s.batch[0]].start, us(102));
  EXPECT_EQ(s.result.records[s.batch[1]].start, us(102));
  EXPECT_EQ(s.result.records[s.next_of_first].start, us(102 + 20 + 2));
  EXPECT_EQ(s.result.records[s.next_of_middle].start, us(102 + 30 + 2));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
