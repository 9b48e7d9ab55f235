// Programs of ranks in unequal places: are they taken apart where they must be, and no further?
#include <gtest/gtest.h>

#include "sim/error.h"
#include "sim/machine/rank_machine.h"
#include "sim/trace/equal_places.h"
#include "sim/trace/trace_check.h"
#include "tests/support/rank_program.h"
#include "tests/support/test_machine.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Duration us(std::int64_t n) { return microseconds(n); }
using Numbers = std::vector<std::uint32_t>;

// One program for `ranks` ranks in groups of `tensor`: 100 us of work, a sum of its group (20 us), one of all (30 us).
Trace folded_job(std::uint32_t tensor, std::uint32_t ranks) {
  RankAuthor author(0);
  Numbers group, all;
  for (std::uint32_t i = 0; i < tensor; ++i) group.push_back(i);
  for (std::uint32_t i = 0; i < ranks; ++i) all.push_back(i);
  author.trace().groups = {{"tensor parallel", tensor, group}, {"all", ranks, all}};
  author.trace().job_ranks = ranks;
  author.kernel(us(100));
  for (const auto& [time, in] : {std::pair{us(20), 0}, {us(30), 1}}) {
    author.order(0, 1);
    author.meet(kNoRendezvous, time, 1, static_cast<std::uint16_t>(in));
    author.order(1, 0);
  }
  author.kernel(us(1));
  RankProgram program = std::move(author).finish();
  for (std::uint32_t i = 1; i < ranks; ++i) program.stands_for.push_back(i);
  std::vector<RankProgram> programs;
  programs.push_back(std::move(program));
  return joined_ranks(std::move(programs));
}

std::vector<Numbers> parts_of(const Trace& trace) {
  std::vector<Numbers> parts;
  for (const Rank& rank : trace.rank_table) {
    parts.push_back({rank.number});
    parts.back().insert(parts.back().end(), rank.stands_for.begin(), rank.stands_for.end());
  }
  return parts;
}

// A machine whose ranks share a host with `sharers` neighbours.
Machine machine_of(std::uint32_t sharers) {
  Machine machine = test_machine();
  for (Link& link : machine.links) link.sharers = sharers;
  return machine;
}

TEST(EqualPlaces, RanksThatShareWithFewerHaveAProgram) {
  const Trace job = folded_job(2, 6);
  EXPECT_FALSE(has_equal_places(job, {4}));
  const Trace apart = with_equal_places(job, {4});
  EXPECT_TRUE(has_equal_places(apart, {4}));
  EXPECT_EQ(check(apart), std::vector<std::string>{});
  EXPECT_EQ(parts_of(apart), (std::vector<Numbers>{{0, 1, 2, 3}, {4, 5}}));
  EXPECT_EQ(apart.groups[apart.rank_table[1].number == 4 ? 2 : 0].members, (Numbers{4, 5}));
}

TEST(EqualPlaces, ThoseThatDivideEvenlyStayTogether) {
  for (const std::uint32_t size : {2u, 3u, 6u, 8u}) EXPECT_TRUE(has_equal_places(folded_job(1, 6), {size})) << size;
  EXPECT_EQ(with_equal_places(folded_job(1, 6), {2, 6}).rank_table.size(), 1u);
}

// {0..3} share a host, then {0, 1} and {2, 3} a link and {4, 5} and {6} one: 6 is alone, its neighbours on the host
// share with it.
TEST(EqualPlaces, EachSizeCounts) {
  const Trace apart = with_equal_places(folded_job(1, 7), {2, 4});
  EXPECT_EQ(parts_of(apart), (std::vector<Numbers>{{0, 1, 2, 3}, {4, 5}, {6}}));
}

TEST(EqualPlaces, TheMachineTakesThemAndTheyMeet) {
  const Trace job = folded_job(2, 6);
  const Machine uneven = machine_of(4);
  EXPECT_THROW(machine_of_ranks(uneven, job), UsageError);
  EXPECT_EQ(shared_sizes(uneven), std::vector<std::uint32_t>{4});
  const Trace apart = with_equal_places(job, shared_sizes(uneven));
  const Duration even = simulate_and_record(job, machine_of(1), {}).result.end - Time{};
  EXPECT_EQ(simulate_and_record(apart, uneven, {}).result.end - Time{}, even);
  // Who is late holds up all: with one part slower the sum of all begins later, that of the other pair does not.
  Trace late = apart;
  bool is_first = true;
  for (OpId id = 0; id < late.ops.size(); ++id)
    if (late.ops[id].kind == OpKind::kernel && late.ops[id].duration == us(100)) {
      if (!is_first) late.ops[id].duration = us(150);
      is_first = false;
    }
  EXPECT_EQ(simulate_and_record(late, uneven, {}).result.end - Time{}, even + us(50));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
