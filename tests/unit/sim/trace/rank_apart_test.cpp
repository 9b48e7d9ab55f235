// A rank taken out of the program that stands for it: does it meet its equals where they worked together, and do they
// wait for it?
#include <gtest/gtest.h>

#include "sim/trace/rank_apart.h"
#include "sim/trace/scale.h"
#include "sim/trace/trace_check.h"
#include "tests/support/rank_program.h"
#include "tests/support/test_machine.h"
#include "traces/run/analysis/summary.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Duration us(std::int64_t n) { return microseconds(n); }
int one_node(std::uint32_t, std::uint32_t) { return 1; }

// A pipeline of two stages, each of `tensor` tensor-parallel ranks in `replicas` replicas, Megatron's order of ranks:
// rank = tensor + t * (replica + d * stage). Each stage computes 100 us, sums over its tensor-parallel group for 20 us;
// the first sends to the second (10 us), which has computed before; each then sums over its replicas for 30 us.
Trace folded_job(std::uint32_t t, std::uint32_t d) {
  std::vector<RankProgram> ranks;
  for (std::uint32_t stage = 0; stage < 2; ++stage) {
    const std::uint32_t first = stage * t * d;
    RankAuthor author(first);
    std::vector<std::uint32_t> tensor, data;
    for (std::uint32_t i = 0; i < t; ++i) tensor.push_back(first + i);
    for (std::uint32_t i = 0; i < d; ++i) data.push_back(first + i * t);
    author.trace().groups = {{"tensor parallel", t, tensor}, {"pipeline", 2, {0, t * d}}, {"data parallel", d, data}};
    author.trace().job_ranks = 2 * t * d;
    author.trace().samples_per_step = stage == 0 ? 4 : 0;
    author.kernel(us(100));
    for (const auto& [rendezvous, time, group] :
         {std::tuple{kNoRendezvous, us(20), 0}, {std::uint32_t{0}, us(10), 1}, {kNoRendezvous, us(30), 2}}) {
      author.order(0, 1);
      author.meet(rendezvous, time, 1, static_cast<std::uint16_t>(group));
      author.order(1, 0);
    }
    author.kernel(us(1));
    RankProgram program = std::move(author).finish();
    for (std::uint32_t i = 1; i < t * d; ++i) program.stands_for.push_back(first + i);
    program.chunks = {{stage, stage, 1, stage == 0, stage == 1}};
    ranks.push_back(std::move(program));
  }
  return joined_ranks(std::move(ranks));
}

Machine machine() { return test_machine(); }

Duration length_of(const Trace& trace) { return simulate_and_record(trace, machine(), {}).result.end - Time{}; }

std::vector<std::uint32_t> numbers_of(const Trace& trace) {
  std::vector<std::uint32_t> numbers;
  for (const Rank& rank : trace.rank_table) numbers.push_back(rank.number);
  return numbers;
}

TEST(RankApart, EqualRanksTakeTheSameTimeApart) {
  const Trace job = folded_job(4, 1);
  const Trace apart = with_rank_apart(job, 2, one_node);
  EXPECT_EQ(check(apart), std::vector<std::string>{});
  EXPECT_EQ(numbers_of(apart), (std::vector<std::uint32_t>{0, 2, 4}));
  EXPECT_EQ(apart.rank_table[0].stands_for, (std::vector<std::uint32_t>{1, 3}));
  EXPECT_TRUE(apart.rank_table[1].stands_for.empty());
  EXPECT_EQ(apart.rank_table[1].chunks, job.rank_table[0].chunks);
  EXPECT_EQ(apart.samples_per_step, job.samples_per_step);
  EXPECT_EQ(length_of(apart), length_of(job));
}

TEST(RankApart, ASlowRankHoldsUpItsGroupAndTheNextStage) {
  const Trace job = folded_job(4, 1);
  // 100 us become 200, before the first sum; the last kernel 2 us instead of 1.
  const Trace slow = scaled(with_rank_apart(job, 2, one_node), {.kernels = 2, .collectives = 1, .rank = 2});
  EXPECT_EQ(length_of(slow), length_of(job) + us(101));
  const RunSummary summary = summarize(simulate_and_record(slow, machine(), {}));
  ASSERT_TRUE(summary.pipeline && summary.pipeline->straggler);
  EXPECT_EQ(summary.pipeline->stages[*summary.pipeline->straggler].rank, 2u);
  EXPECT_EQ(summary.pipeline->straggles, us(101));
  EXPECT_EQ(summary.pipeline->stages[0].equals, us(100));
  EXPECT_EQ(summary.pipeline->stages[0].bubble, us(0));
}

TEST(RankApart, RanksOfOtherNodesGetAProgramOfTheirOwn) {
  // Nodes of two: {0, 1}, {2, 3}, {4, 5}, {6, 7}; replicas {0, 2}, {1, 3}.
  const auto same = [](std::uint32_t a, std::uint32_t b) { return a / 2 == b / 2 ? 1 : 0; };
  const Trace job = folded_job(2, 2);
  const Trace apart = with_rank_apart(job, 3, same);
  EXPECT_EQ(check(apart), std::vector<std::string>{});
  EXPECT_EQ(numbers_of(apart), (std::vector<std::uint32_t>{0, 2, 3, 4}));
  EXPECT_EQ(apart.rank_table[0].stands_for, (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(length_of(apart), length_of(job));
  const auto group = [&](std::uint16_t rank, const char* name) {
    for (const Op& op : apart.ops)
      if (op.kind == OpKind::collective && rank_of(apart, op) == rank && apart.groups[op.group].name == name)
        return std::pair{apart.groups[op.group].members, op.target};
    return std::pair{std::vector<std::uint32_t>{}, kNoRendezvous};
  };
  using Members = std::vector<std::uint32_t>;
  EXPECT_EQ(group(2, "tensor parallel").first, (Members{2, 3}));
  EXPECT_EQ(group(2, "data parallel").first, (Members{1, 3}));
  EXPECT_EQ(group(2, "pipeline").first, (Members{3, 7}));
  EXPECT_EQ(group(0, "tensor parallel"), (std::pair{Members{0, 1}, kNoRendezvous})) << "no rank of it is apart";
  EXPECT_EQ(group(1, "tensor parallel").second, group(2, "tensor parallel").second);
  EXPECT_NE(group(1, "tensor parallel").second, kNoRendezvous);
  EXPECT_EQ(group(0, "data parallel").second, group(2, "data parallel").second);
}

TEST(RankApart, WhoHasAProgramKeepsIt) {
  const Trace job = folded_job(1, 1);
  EXPECT_EQ(numbers_of(with_rank_apart(job, 1, one_node)), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(numbers_of(with_rank_apart(job, 77, one_node)), (std::vector<std::uint32_t>{0, 1}));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
