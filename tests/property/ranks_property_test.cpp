// Whatever the programs of several ranks: are they the same in one trace as apart, in what they say and when they run?
#include "sim/trace/ranks.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <tuple>

#include "sim/engine/simulation.h"
#include "sim/trace/rendezvous.h"
#include "sim/trace/trace_check.h"
#include "tests/support/random_trace.h"
#include "tests/support/rank_program.h"
#include "tests/support/same_program.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

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
  std::uint32_t rendezvous = 0;
  for (Op& op : trace.ops)
    if (op.kind == OpKind::collective && *rc::gen::inRange(0, 2) == 1) op.target = rendezvous++;
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

// --- as simulated ---

// Kernels, copies, events and waits; collectives in the order of `rendezvous`, which all ranks share.
Trace random_program(std::uint32_t number, const std::vector<Duration>& rendezvous) {
  RankAuthor author(number);
  author.trace().constants.launch_latency[0] = microseconds(*rc::gen::inRange(-2, 4));
  author.trace().constants.stream_gap[0][0] = microseconds(*rc::gen::inRange(0, 3));
  author.trace().constants.launch_queue_depth = static_cast<std::uint32_t>(*rc::gen::inRange(1, 20));
  const auto some_work = [&] {
    for (int i = *rc::gen::inRange(0, 8); i > 0; --i) {
      const auto stream = static_cast<std::uint16_t>(*rc::gen::inRange(0, 2));
      switch (*rc::gen::inRange(0, 4)) {
        case 0:
          author.order(stream, 1 - stream);
          break;
        case 1:
          author.synchronize();
          break;
        default: {
          Op& op = author.trace().ops[author.kernel(microseconds(*rc::gen::inRange(0, 100)), stream)];
          op.host_gap = microseconds(*rc::gen::inRange(0, 10));
          op.host_cost = microseconds(*rc::gen::inRange(0, 10));
          op.waves = static_cast<float>(*rc::gen::inRange(0, 5));
          op.bytes = *rc::gen::inRange<Bytes>(0, 200'000'000);
        }
      }
    }
  };
  for (std::uint32_t m = 0; m < rendezvous.size(); ++m) {
    some_work();
    author.meet(m, rendezvous[m], static_cast<std::uint16_t>(*rc::gen::inRange(0, 2)));
  }
  some_work();
  return std::move(author).finish().trace;
}

std::vector<Duration> random_rendezvous() {
  std::vector<Duration> rendezvous;
  for (int i = *rc::gen::inRange(0, 6); i > 0; --i) rendezvous.push_back(microseconds(*rc::gen::inRange(0, 50)));
  return rendezvous;
}

bool same_times(const OpRecord& a, const OpRecord& b) {
  return std::tie(a.host_start, a.host_end, a.start, a.end) == std::tie(b.host_start, b.host_end, b.start, b.end);
}

RC_GTEST_PROP(Ranks, WhoMeetsNobodyRunsAsAlone, ()) {
  std::vector<RankProgram> ranks;
  for (std::uint32_t number = 0; number < 3; ++number) ranks.push_back({number, random_program(number, {})});
  const SimulationResult together = simulate(joined_ranks(ranks), test_machine(), {});
  std::size_t first = 0;
  for (const RankProgram& rank : ranks) {
    const SimulationResult alone = simulate(rank.trace, test_machine(), {});
    for (std::size_t i = 0; i < alone.records.size(); ++i)
      RC_ASSERT(same_times(alone.records[i], together.records[first + i]));
    first += alone.records.size();
  }
}

RC_GTEST_PROP(Ranks, EqualRanksRunAsOne, ()) {
  const Trace program = random_program(0, random_rendezvous());
  const SimulationResult alone = simulate(program, test_machine(), {});
  const SimulationResult together =
      simulate(joined_ranks({{0, program}, {1, program}, {7, program}}), test_machine(), {});
  for (std::size_t i = 0; i < together.records.size(); ++i)
    RC_ASSERT(same_times(together.records[i], alone.records[i % alone.records.size()]));
}

RC_GTEST_PROP(Ranks, AllEndTogetherAndNobodyWaitsLongerThanForTheLast, ()) {
  const std::vector<Duration> rendezvous = random_rendezvous();
  std::vector<RankProgram> ranks;
  for (std::uint32_t number = 0; number < 3; ++number) {
    ranks.push_back({number, random_program(number, rendezvous)});
    for (Op& op : ranks.back().trace.ops)
      if (op.kind == OpKind::collective) op.duration += microseconds(*rc::gen::inRange(0, 9));
  }
  const Trace trace = joined_ranks(ranks);
  RC_ASSERT(check(trace).empty());
  const SimulationResult result = simulate(trace, test_machine(), {});
  const RendezvousTable all(trace);
  RC_ASSERT(all.size() == rendezvous.size());
  for (std::size_t m = 0; m < all.size(); ++m) {
    Time last{};
    Duration longest{};
    for (const OpId id : all.members(m)) {
      last = std::max(last, result.records[id].start);
      longest = std::max(longest, trace.ops[id].duration);
    }
    for (const OpId id : all.members(m)) {
      const OpRecord& record = result.records[id];
      RC_ASSERT(record.end == last + longest);
      RC_ASSERT((record.peer == kNoOp ? record : result.records[record.peer]).start == last);
    }
  }
  // Streams stay in order, whoever waits.
  std::vector<Time> end(trace.streams.size());
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    if (!runs_on_device(trace.ops[id].kind)) continue;
    RC_ASSERT(result.records[id].start >= end[trace.ops[id].stream]);
    end[trace.ops[id].stream] = result.records[id].end;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
