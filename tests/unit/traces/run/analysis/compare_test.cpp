// Is the right op compared with the right one, and do the differences add up?
#include "traces/run/analysis/compare.h"

#include <algorithm>

#include "sim/trace/scale.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/handmade_run.h"
#include "tests/support/test_machine.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Kernels of 2 us, one behind the other, launched at once; their names are the letters.
memwall::Run chain(const std::string& letters, const std::string& trace_name) {
  HandmadeRun hand;
  hand.run.trace.edit().name = trace_name;
  double at = 1;
  OpId previous = kNoOp;
  for (const char c : letters) {
    const WaitReason reason = previous == kNoOp ? WaitReason::launch : WaitReason::stream_order;
    previous = hand.device(OpKind::kernel, std::string(1, c), 0, 0, 0, at, at + 2, reason, previous);
    at += 2;
  }
  return hand.finish();
}

std::string aligned(const std::string& base, const std::string& other, const std::string& other_name) {
  std::string text;
  const memwall::Run a = chain(base, "one"), b = chain(other, other_name);
  for (const OpPair& pair : align(a, b)) {
    EXPECT_EQ(base[pair.base], other[pair.other]);
    text += base[pair.base];
  }
  return text;
}

TEST(Align, FindsTheLongestCommonSubsequence) {
  EXPECT_EQ(aligned("abcabba", "cbabac", "two").size(), 4u);  // Myers' own example
  EXPECT_EQ(aligned("abc", "abc", "two"), "abc");
  EXPECT_EQ(aligned("abc", "xyz", "two"), "");
  EXPECT_EQ(aligned("", "abc", "two"), "");
  EXPECT_EQ(aligned("abcdef", "abdxef", "two"), "abdef");
}

// By brute force, over all pairs of words of up to five letters out of two.
TEST(Align, IsNeverShorterThanTheLongestOfShortWords) {
  std::vector<std::string> words = {""};
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i].size() < 4)
      for (const char c : {'a', 'b'}) words.push_back(words[i] + c);
  for (const std::string& x : words)
    for (const std::string& y : words) {
      std::vector<std::vector<std::size_t>> length(x.size() + 1, std::vector<std::size_t>(y.size() + 1, 0));
      for (std::size_t i = 1; i <= x.size(); ++i)
        for (std::size_t j = 1; j <= y.size(); ++j)
          length[i][j] = x[i - 1] == y[j - 1] ? length[i - 1][j - 1] + 1 : std::max(length[i - 1][j], length[i][j - 1]);
      ASSERT_EQ(aligned(x, y, "two").size(), length[x.size()][y.size()]) << x << " " << y;
    }
}

TEST(Align, TakesAChainOfEqualKeysWhereRunsDifferTooMuch) {
  std::string base, other;
  for (int i = 0; i < 1500; ++i) base += "ab", other += "cb";
  EXPECT_EQ(aligned(base, other, "two"), std::string(1500, 'b'));  // 3000 edits: beyond the limit
}

TEST(Align, FollowsLineageThroughInsertedOps) {
  EXPECT_EQ(aligned("aabb", "aacbb", "one"), "aabb");
  const memwall::Run base = chain("ab", "one");
  memwall::Run other = chain("aab", "one");
  other.trace.edit().ops[0].added = true;  // put in by a policy: not the base's "a"
  const std::vector<OpPair> pairs = align(base, other);
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].other, 1u);
}

TEST(Align, KnowsLineageByTheInput) {
  memwall::Run a = chain("a", "one"), b = chain("a", "two");
  EXPECT_FALSE(same_lineage(a, b));
  a.inputs = b.inputs = {{"x.json", "xxh64:1"}};
  EXPECT_TRUE(same_lineage(a, b));
}

TEST(Compare, OfARunWithItselfIsNothing) {
  const memwall::Run run = simulate_and_record(gpt_step({}), test_machine(), {});
  const Comparison found = compare(run, run);
  EXPECT_EQ(found.ops_equal, run.trace->ops.size());
  EXPECT_TRUE(found.ops.empty());
  for (const Duration d : found.waterfall.by_class) EXPECT_EQ(d, Duration{});
  for (const LagPoint& point : found.lag) EXPECT_EQ(point.lag, Duration{});
  EXPECT_LE(found.lag.size(), kLagPoints);
}

TEST(Compare, NamesWhatWasAddedRemovedAndChanged) {
  const memwall::Run base = chain("abc", "one");
  HandmadeRun hand;
  hand.run.trace.edit().name = "one";
  hand.device(OpKind::kernel, "a", 0, 0, 0, 1, 6);  // 5 us instead of 2
  hand.device(OpKind::copy, "offload", 1, 0, 0, 6, 7, WaitReason::event, 0);
  hand.op(1).bytes = 4096;
  hand.device(OpKind::kernel, "c", 0, 0, 0, 7, 9, WaitReason::event, 1);
  const Comparison found = compare(base, hand.finish());
  EXPECT_EQ(found.ops_equal, 1u);
  EXPECT_EQ(found.ops_changed, 1u);
  EXPECT_EQ(found.ops_added, 1u);
  EXPECT_EQ(found.ops_removed, 1u);
  ASSERT_EQ(found.ops.size(), 3u);
  EXPECT_EQ(found.ops[0].name, "a");
  EXPECT_EQ(found.ops[0].difference(), microseconds(3));
  EXPECT_EQ(found.ops[1].name, "b");
  EXPECT_EQ(found.ops[1].change, OpChange::removed);
  EXPECT_EQ(found.ops[1].difference(), microseconds(-2));
  EXPECT_EQ(found.ops[2].change, OpChange::added);
  EXPECT_EQ(found.ops[2].other_bytes, 4096);
  // base: 1 us before, 6 us compute. other: 1 before, 7 compute, 1 copy.
  EXPECT_EQ(found.base_time, microseconds(7));
  EXPECT_EQ(found.other_time, microseconds(9));
  EXPECT_EQ(found.waterfall[TimeClass::compute], microseconds(1));
  EXPECT_EQ(found.waterfall[TimeClass::copy], microseconds(1));
  ASSERT_EQ(found.lag.size(), 2u);
  EXPECT_EQ(found.lag[0].time, microseconds(3));
  EXPECT_EQ(found.lag[0].lag, microseconds(3));
  EXPECT_EQ(found.lag[1].lag, microseconds(2));
}

TEST(Compare, WaterfallAddsUpForSlowerKernels) {
  GptShape shape;
  shape.launch_cost = nanoseconds(9);
  const Trace trace = gpt_step(shape);
  const memwall::Run base = simulate_and_record(trace, test_machine(), {});
  const memwall::Run other = simulate_and_record(scaled(trace, {.kernels = 1.37}), test_machine(), {});
  const Comparison found = compare(base, other);
  EXPECT_EQ(found.waterfall.total(), found.other_time - found.base_time);
  EXPECT_GT(found.waterfall[TimeClass::compute].count(), 0);
  EXPECT_EQ(found.ops_added + found.ops_removed, 0u);
  EXPECT_GT(found.ops_changed, 0u);
}

TEST(Compare, MatchesTiersAndLinksByName) {
  memwall::Run base = chain("a", "one"), other = chain("a", "one");
  std::reverse(other.machine.tiers.begin(), other.machine.tiers.end());
  other.machine.links.pop_back();
  other.result.links.pop_back();
  base.result.tiers[0].peak_allocated = 5;
  other.result.tiers[3].peak_allocated = 9;
  base.result.links[0].bytes = 7;
  const Comparison found = compare(base, other);
  ASSERT_EQ(found.tiers.size(), 4u);
  EXPECT_EQ(found.tiers[0].name, "hbm");
  EXPECT_EQ(found.tiers[0].base_allocated, 5);
  EXPECT_EQ(found.tiers[0].other_allocated, 9);
  EXPECT_TRUE(found.links.back().in_base);
  EXPECT_FALSE(found.links.back().in_other);
  EXPECT_EQ(found.links[0].base_bytes, 7);
}

TEST(Compare, GivesTheSameJsonEachTime) {
  const memwall::Run a = chain("abc", "one"), b = chain("acd", "one");
  const std::string json = to_json(compare(a, b));
  EXPECT_EQ(json, to_json(compare(a, b)));
  EXPECT_NE(json.find("\"waterfall\""), std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
