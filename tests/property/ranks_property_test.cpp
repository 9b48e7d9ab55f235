// Whatever the programs of several ranks: are they the same in one trace as apart, in what they say and when they run?
#include "sim/ranks.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/trace_check.h"
#include "tests/support/random_trace.h"
#include "tests/support/same_program.h"

namespace memwall {
namespace {

// A program of rank `number`, with groups of which some are common to all ranks and some are not known.
Trace random_rank(std::uint32_t number) {
  Trace trace = random_trace(*rc::gen::arbitrary<std::uint64_t>(), *rc::gen::inRange<std::size_t>(1, 80));
  trace.name = "one job";
  trace.machine = "";
  trace.knowledge = {true, true, false, false, false};
  trace.job_ranks = 8;
  trace.groups = {{"all", 8, {0, 1, 2, 3, 4, 5, 6, 7}}, {"mine " + std::to_string(number), 1, {number}}};
  trace.groups.resize(*rc::gen::inRange<std::size_t>(0, 3));
  trace.notes.push_back("said by rank " + std::to_string(number));
  // Devices are counted densely in a trace of several ranks.
  for (std::size_t i = 0; i < trace.streams.size(); ++i)
    trace.streams[i].device = static_cast<std::uint16_t>(i < 2 ? 0 : i - 1);
  std::uint32_t meeting = 0;
  for (Op& op : trace.ops)
    if (op.kind == OpKind::collective && *rc::gen::inRange(0, 2) == 1) op.target = meeting++;
  return trace;
}

std::vector<RankProgram> random_ranks() {
  std::vector<RankProgram> ranks;
  std::uint32_t number = 0;
  for (int i = *rc::gen::inRange(1, 5); i > 0; --i) {
    number += static_cast<std::uint32_t>(*rc::gen::inRange(1, 3));
    ranks.push_back({number, random_rank(number)});
  }
  return ranks;
}

RC_GTEST_PROP(Ranks, ComeOutOfOneTraceAsTheyWentIn, ()) {
  const std::vector<RankProgram> ranks = random_ranks();
  std::vector<RankProgram> backwards(ranks.rbegin(), ranks.rend());
  const Trace joined = joined_ranks(std::move(backwards));
  RC_ASSERT(rank_count(joined) == ranks.size());
  for (std::uint16_t i = 0; i < ranks.size(); ++i) {
    RC_ASSERT(joined.rank_table[i].number == ranks[i].number);
    RC_ASSERT(program_difference(one_rank(joined, i), ranks[i].trace) == "");
  }
}

RC_GTEST_PROP(Ranks, JoinedAgainAreTheSameTrace, ()) {
  const Trace joined = joined_ranks(random_ranks());
  std::vector<RankProgram> apart;
  for (std::uint16_t i = 0; i < rank_count(joined); ++i)
    apart.push_back({joined.rank_table[i].number, one_rank(joined, i)});
  RC_ASSERT(program_difference(joined_ranks(apart), joined) == "");
}

}  // namespace
}  // namespace memwall
