// Do the collectives that a policy adds to each of several ranks meet?
#include "sim/policy/added_rendezvous.h"

#include <gtest/gtest.h>

#include "sim/error.h"
#include "sim/trace/rendezvous.h"
#include "sim/trace/trace_check.h"
#include "tests/support/rank_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Kernels of the time given, then an added all-reduce of `bytes`, twice; before both one that was captured.
RankProgram rank(std::uint32_t number, Duration time, Bytes bytes, std::uint32_t of) {
  RankAuthor author(number);
  author.meet(4, microseconds(1));
  for (int i = 0; i < 2; ++i) {
    author.kernel(time);
    author.order(0, 1);
    Op& op = author.trace().ops[author.meet(kNoRendezvous, microseconds(10), 1, 1)];
    op.added = true;
    op.bytes = bytes;
  }
  RankProgram program = std::move(author).finish();
  program.trace.ranks = of;
  return program;
}

TEST(AddedRendezvous, MeetInTheirOrder) {
  std::vector<RankProgram> ranks;
  ranks.push_back(rank(0, microseconds(100), 1000, 2));
  ranks.push_back(rank(1, microseconds(300), 1000, 2));
  join_added_collectives(ranks, "test");
  const Trace joined = joined_ranks(ranks);
  EXPECT_EQ(check(joined), std::vector<std::string>{});
  EXPECT_EQ(RendezvousTable(joined).size(), 3u);
  for (const Rank& each : joined.rank_table) EXPECT_EQ(each.ranks, 1u);
  EXPECT_EQ(joined.groups.at(1).members, (std::vector<std::uint32_t>{0, 1}));
}

TEST(AddedRendezvous, AbsentRanksComeWithThosePresent) {
  std::vector<RankProgram> ranks;
  ranks.push_back(rank(0, microseconds(100), 1000, 8));
  ranks.push_back(rank(1, microseconds(300), 1000, 8));
  ranks[0].stands_for = {2};
  ranks[1].stands_for = {3};
  join_added_collectives(ranks, "test");
  for (const RankProgram& each : ranks) EXPECT_EQ(each.trace.ranks, 2u) << "of eight ranks four are there";
}

TEST(AddedRendezvous, RanksThatDifferAreRefused) {
  const auto join = [](Bytes bytes, std::uint32_t of) {
    std::vector<RankProgram> ranks;
    ranks.push_back(rank(0, microseconds(100), 1000, of));
    ranks.push_back(rank(1, microseconds(300), bytes, of));
    join_added_collectives(ranks, "test");
  };
  EXPECT_NO_THROW(join(1000, 4));
  EXPECT_THROW(join(1001, 4), UsageError);
  EXPECT_THROW(join(1000, 3), UsageError);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
