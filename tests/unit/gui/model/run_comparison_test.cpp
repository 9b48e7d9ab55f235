// Are the right ops of two runs paired, both ways, and is the curve of the lag whole however few points are drawn?
#include "gui/model/run_comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "sim/policy/registry.h"
#include "sim/trace/scale.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/handmade_run.h"
#include "tests/support/rank_program.h"
#include "tests/support/test_machine.h"
#include "traces/run/run_recorder.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

std::shared_ptr<const RunAnalysis> analysed(memwall::Run run) {
  return analyse(*source_of(std::make_shared<const memwall::Run>(std::move(run))), {});
}

// Two runs and what differs between them.
struct Compared {
  std::shared_ptr<const RunAnalysis> base, other;
  std::shared_ptr<const RunComparison> comparison;

  Compared(memwall::Run first, memwall::Run second)
      : base(analysed(std::move(first))), other(analysed(std::move(second))) {
    comparison = compare_runs(*base, *other);
  }
};

// Kernels of random length one behind the other, launched at once.
memwall::Run kernels(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  HandmadeRun hand;
  hand.run.trace.edit().name = "kernels";
  double at = 1;
  OpId previous = kNoOp;
  for (std::size_t i = 0; i < count; ++i) {
    const double length = 1 + static_cast<double>(random() % 1000) / 100;
    const WaitReason reason = previous == kNoOp ? WaitReason::launch : WaitReason::stream_order;
    previous = hand.device(OpKind::kernel, "k", 0, 0, 0, at, at + length, reason, previous);
    at += length;
  }
  return hand.finish();
}

GptShape small_gpt(int steps = 2) {
  GptShape shape;
  shape.layers = 3;
  shape.steps = steps;
  shape.launch_cost = nanoseconds(9);
  return shape;
}

memwall::Run with_policy(const Trace& trace, const std::string& policy, const Machine& machine) {
  const Trace changed =
      policy.empty() ? trace : apply_rewriters(trace, {parse_policy(policy)}, machine, *test_pricer(machine));
  return simulate_and_record(changed, machine, {});
}

// What must hold of any two runs.
void expect_consistent(const Compared& c) {
  const RunComparison& found = *c.comparison;
  const Trace &base = c.base->run->trace, &other = c.other->run->trace;
  std::set<OpId> in_base, in_other;
  for (const OpPair& pair : found.pairs) {
    ASSERT_LT(pair.base, base.ops.size());
    ASSERT_LT(pair.other, other.ops.size());
    EXPECT_TRUE(in_base.insert(pair.base).second && in_other.insert(pair.other).second) << "an op stands in two pairs";
    EXPECT_EQ(base.ops[pair.base].kind, other.ops[pair.other].kind);
    EXPECT_EQ(base.strings[base.ops[pair.base].name], other.strings[other.ops[pair.other].name]);
    EXPECT_EQ(found.counterpart({0, pair.base, false}), (OpRef{1, pair.other, false}));
    EXPECT_EQ(found.counterpart({1, pair.other, true}), (OpRef{0, pair.base, true}));
  }
  for (OpId id = 0; id < base.ops.size(); ++id)
    EXPECT_EQ(found.counterpart({0, id, false}).has_value(), in_base.contains(id));
  for (OpId id = 0; id < other.ops.size(); ++id)
    EXPECT_EQ(found.counterpart({1, id, false}).has_value(), in_other.contains(id));
  EXPECT_EQ(found.comparison.ops_equal + found.comparison.ops_changed, found.pairs.size());
  EXPECT_EQ(found.comparison.ops_removed, base.ops.size() - found.pairs.size());
  EXPECT_EQ(found.comparison.ops_added, other.ops.size() - found.pairs.size());
  EXPECT_EQ(found.comparison.waterfall.total(), found.comparison.other_time - found.comparison.base_time);
  EXPECT_TRUE(std::is_sorted(found.lag.begin(), found.lag.end(),
                             [](const LagPoint& a, const LagPoint& b) { return a.time < b.time; }));
  for (const LagPoint& point : found.lag) {
    const OpRef there = *found.counterpart({0, point.base, false});
    EXPECT_EQ(point.time, c.base->run->result.records[point.base].end);
    EXPECT_EQ(point.time + point.lag, c.other->run->result.records[there.op].end);
  }
}

// The longest of the ops of a row, by looking at every op of it.
void expect_largest_examples(const Compared& c) {
  const std::vector<OpDifference>& rows = c.comparison->comparison.ops;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const OpDifference& row = rows[i];
    const OpRef found = largest_example(*c.comparison, i, *c.base, *c.other);
    ASSERT_NE(found.op, kNoOp) << row.name;
    EXPECT_EQ(found.run, row.change == OpChange::added ? 1 : 0);
    const memwall::Run &run = found.run == 0 ? *c.base->run : *c.other->run, &second = *c.other->run;
    const auto size = [&](OpId id) {
      const std::optional<OpRef> there = c.comparison->counterpart({found.run, id, false});
      if (there.has_value() != (row.change == OpChange::changed)) return Duration(-1);
      const Duration before = there && found.run == 0 ? cost_of(second, there->op).time : Duration{};
      return Duration(std::abs((cost_of(run, id).time - before).count()));
    };
    const auto same_kind = [&](OpId id) {
      const Op& op = run.trace->ops[id];
      return name_of(run, id) == row.name && op.kind == row.kind && op.phase == row.phase &&
             run.trace->strings[op.operator_name] == row.operator_name;
    };
    EXPECT_TRUE(same_kind(found.op)) << row.name;
    Duration largest(-1);
    for (OpId id = 0; id < run.trace->ops.size(); ++id)
      if (same_kind(id)) largest = std::max(largest, size(id));
    EXPECT_EQ(size(found.op), largest) << row.name;
  }
}

TEST(RunComparison, OfOtherKernelTimesPairsEveryOp) {
  const Trace trace = gpt_step(small_gpt());
  const Compared c(with_policy(trace, "", test_machine()),
                   simulate_and_record(scaled(trace, {.kernels = 1.4}), test_machine(), {}));
  expect_consistent(c);
  expect_largest_examples(c);
  EXPECT_EQ(c.comparison->pairs.size(), trace.ops.size());
  EXPECT_GT(c.comparison->comparison.ops_changed, 0u);
}

TEST(RunComparison, OfPoliciesLeavesWhatTheyAddedWithoutCounterpart) {
  const Trace trace = gpt_step(small_gpt());
  for (const char* policy : {"checkpoint:mode=full", "offload:what=optimizer,to=host,cpu_adam=0",
                             "offload:what=activations,to=host,min_bytes=1", "batch:4"}) {
    SCOPED_TRACE(policy);
    const Compared c(with_policy(trace, "", test_machine()), with_policy(trace, policy, test_machine()));
    expect_consistent(c);
    expect_largest_examples(c);
    EXPECT_TRUE(c.comparison->comparison.same_lineage);
    for (const OpPair& pair : c.comparison->pairs)
      EXPECT_EQ(c.base->run->trace->ops[pair.base].added, c.other->run->trace->ops[pair.other].added)
          << "what a policy added is paired with an op that was there";
    std::uint64_t added = 0;
    for (const Op& op : c.other->run->trace->ops) added += op.added;
    EXPECT_GE(c.comparison->comparison.ops_added, added);
  }
}

TEST(RunComparison, OfAnotherMachineOnlyPairsEveryOp) {
  const Trace trace = gpt_step(small_gpt(3));
  Machine slower = test_machine();
  for (Link& link : slower.links) link.bandwidth /= 4;
  const std::string policy = "offload:what=optimizer,to=host,cpu_adam=0";
  const Compared c(with_policy(trace, policy, test_machine()), with_policy(trace, policy, slower));
  expect_consistent(c);
  EXPECT_EQ(c.comparison->comparison.ops_added + c.comparison->comparison.ops_removed, 0u);
  EXPECT_GT(c.comparison->comparison.waterfall[TimeClass::copy].count(), 0);
}

TEST(RunComparison, OfMoreStepsPairsThoseThatBothHave) {
  const Compared c(with_policy(gpt_step(small_gpt(1)), "", test_machine()),
                   with_policy(gpt_step(small_gpt(3)), "", test_machine()));
  expect_consistent(c);
  EXPECT_EQ(c.comparison->comparison.ops_removed, 0u);
  EXPECT_GT(c.comparison->comparison.ops_added, c.comparison->pairs.size());
}

// Three ranks against the same with rank 1 slower, and against two of them.
TEST(RunComparison, OfSeveralRanksPairsEachWithItself) {
  const auto ranks = [](std::size_t count, std::int64_t slow) {
    std::vector<RankProgram> programs;
    for (std::uint32_t r = 0; r < count; ++r) {
      RankAuthor author(r);
      for (std::uint32_t m = 0; m < 5; ++m) {
        author.kernel(microseconds(r == 1 ? slow : 10));
        author.order(0, 1);
        author.meet(m, microseconds(5));
        author.order(1, 0);
      }
      programs.push_back(std::move(author).finish());
    }
    return simulate_and_record(joined_ranks(std::move(programs)), test_machine(), {});
  };
  const Compared slower(ranks(3, 10), ranks(3, 40));
  expect_consistent(slower);
  EXPECT_EQ(slower.comparison->pairs.size(), slower.base->run->trace->ops.size());
  for (const OpPair& pair : slower.comparison->pairs) EXPECT_EQ(pair.base, pair.other);
  const Compared fewer(ranks(3, 10), ranks(2, 10));
  expect_consistent(fewer);
  for (const OpPair& pair : fewer.comparison->pairs)
    EXPECT_EQ(rank_of(fewer.base->run->trace, fewer.base->run->trace->ops[pair.base]),
              rank_of(fewer.other->run->trace, fewer.other->run->trace->ops[pair.other]));
}

TEST(RunComparison, TheLagEndsWithTheDifferenceOfTheEnds) {
  const Compared c(kernels(500, 1), kernels(500, 2));
  ASSERT_EQ(c.comparison->lag.size(), 500u);
  EXPECT_EQ(c.comparison->lag.back().lag, c.other->run->result.end - c.base->run->result.end);
  EXPECT_EQ(c.comparison->lag.back().base, 499u);
}

TEST(RunComparison, ShiftsTheSecondRunBelowTheFirst) {
  HandmadeRun first, second;
  first.device(OpKind::kernel, "a", 0, 1, 2, 10, 20);
  first.host(OpKind::mark, "m", 3, 3);
  first.host(OpKind::mark, "only here", 4, 4);
  second.host(OpKind::host_work, "only there", 0, 1);  // so that numbers differ
  second.device(OpKind::kernel, "a", 0, 2, 4, 13, 25);
  second.host(OpKind::mark, "m", 9, 9);
  const Compared c(first.finish(), second.finish());
  const auto shift = [&](OpRef op) { return c.comparison->shift_to(op, *c.base, *c.other); };
  EXPECT_EQ(shift({0, 0, false}), microseconds(-3)) << "work begins at 10 and 13";
  EXPECT_EQ(shift({1, 1, false}), microseconds(-3)) << "the same from the other side";
  EXPECT_EQ(shift({0, 0, true}), microseconds(-1)) << "calls begin at 1 and 2";
  EXPECT_EQ(shift({0, 1, false}), microseconds(-6)) << "without work, the call";
  EXPECT_EQ(shift({0, 2, true}), Duration{});
}

TEST(RunComparison, TheLargestExampleIsTheLargestEitherWay) {
  const auto run = [](const std::vector<double>& lengths) {
    HandmadeRun hand;
    double at = 0;
    for (const double length : lengths) {
      hand.device(OpKind::kernel, "k", 0, 0, 0, at, at + length);
      at += length;
    }
    return hand.finish();
  };
  const Compared c(run({10, 10, 10, 10}), run({12, 5, 10, 5}));
  ASSERT_EQ(c.comparison->comparison.ops.size(), 1u);
  EXPECT_EQ(largest_example(*c.comparison, 0, *c.base, *c.other), (OpRef{0, 1, false})) << "the first of -5 us";
}

TEST(RunComparison, LagWithinARangeKeepsEverythingWhereItFits) {
  const Compared c(kernels(300, 3), kernels(300, 4));
  const std::vector<LagPoint>& lag = c.comparison->lag;
  const TimeRange range{lag[10].time, lag[200].time};
  const std::vector<LagPoint> found = c.comparison->lag_within(range, 1000);
  ASSERT_EQ(found.size(), 191u) << "both ends belong to the range";
  EXPECT_EQ(found.front().base, 10u);
  EXPECT_EQ(found.back().base, 200u);
  EXPECT_TRUE(c.comparison->lag_within({lag[10].time + Duration(1), lag[11].time - Duration(1)}, 4).empty());
}

TEST(RunComparison, LagWithinARangeKeepsTheExtremesOfEachPiece) {
  const Compared c(kernels(20'000, 5), kernels(20'000, 6));
  const std::vector<LagPoint>& lag = c.comparison->lag;
  ASSERT_GT(c.comparison->lag_blocks.size(), 50u);
  for (const TimeRange range : {TimeRange{Time{}, c.base->run->result.end}, TimeRange{lag[777].time, lag[15'003].time},
                                TimeRange{lag[5000].time, lag[5600].time}})
    for (const std::size_t most : {4u, 40u, 400u}) {
      const std::vector<LagPoint> found = c.comparison->lag_within(range, most);
      EXPECT_LE(found.size(), most);
      const std::size_t pieces = most / 4;
      for (std::size_t p = 0; p < pieces; ++p) {
        const auto bound = [&](std::size_t piece) {
          return range.begin +
                 Duration(static_cast<std::int64_t>(static_cast<double>(range.length().count()) *
                                                    static_cast<double>(piece) / static_cast<double>(pieces)));
        };
        const auto extremes_of = [&](const std::vector<LagPoint>& points) {
          std::pair<Duration, Duration> extremes{Duration::max(), Duration::min()};
          for (const LagPoint& point : points) {
            const bool inside = point.time >= bound(p) && (point.time < bound(p + 1) || p + 1 == pieces);
            if (!inside || !range.contains(point.time)) continue;
            extremes = {std::min(extremes.first, point.lag), std::max(extremes.second, point.lag)};
          }
          return extremes;
        };
        ASSERT_EQ(extremes_of(found), extremes_of(lag)) << "piece " << p << " of " << pieces;
      }
    }
}

TEST(RunComparison, FindsThePointsAroundAnInstant) {
  const Compared c(kernels(3, 7), kernels(3, 8));
  const std::vector<LagPoint>& lag = c.comparison->lag;
  const RunComparison& found = *c.comparison;
  EXPECT_FALSE(found.last_until(lag[0].time - Duration(1)));
  EXPECT_FALSE(found.last_before(lag[0].time));
  EXPECT_EQ(found.last_until(lag[0].time)->base, 0u);
  EXPECT_EQ(found.last_before(lag[1].time)->base, 0u);
  EXPECT_EQ(found.first_behind(lag[1].time)->base, 2u);
  EXPECT_FALSE(found.first_behind(lag[2].time));
}

TEST(RunComparison, IsTheComparisonOfTheCommandLine) {
  const Trace trace = gpt_step(small_gpt());
  const Compared c(with_policy(trace, "", test_machine()), with_policy(trace, "checkpoint:mode=full", test_machine()));
  EXPECT_EQ(to_json(c.comparison->comparison), to_json(compare(*c.base->run, *c.other->run)));
}

TEST(RunComparison, StopsWhenTold) {
  const auto run = analysed(kernels(10, 1));
  for (int stop = 0; stop < 3; ++stop) {
    int calls = 0;
    EXPECT_THROW(compare_runs(*run, *run, [&](double) { return calls++ < stop; }), LoadCancelled);
    EXPECT_EQ(calls, stop + 1);
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
