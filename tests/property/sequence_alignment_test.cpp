// Is the alignment of two sequences a common subsequence, and a longest one?
#include "sim/trace/sequence_alignment.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <random>

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Values = std::vector<std::uint64_t>;

// The textbook table, as an oracle.
std::size_t longest_by_table(const Values& a, const Values& b) {
  std::vector<std::vector<std::size_t>> table(a.size() + 1, std::vector<std::size_t>(b.size() + 1, 0));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < b.size(); ++j)
      table[i + 1][j + 1] = a[i] == b[j] ? table[i][j] + 1 : std::max(table[i][j + 1], table[i + 1][j]);
  return table[a.size()][b.size()];
}

void expect_common(const Values& a, const Values& b, const Alignment& alignment) {
  for (std::size_t i = 0; i < alignment.size(); ++i) {
    ASSERT_LT(alignment[i].first, a.size());
    ASSERT_LT(alignment[i].second, b.size());
    EXPECT_EQ(a[alignment[i].first], b[alignment[i].second]);
    if (i > 0) {
      EXPECT_LT(alignment[i - 1].first, alignment[i].first);
      EXPECT_LT(alignment[i - 1].second, alignment[i].second);
    }
  }
}

RC_GTEST_PROP(Alignment, IsALongestCommonSubsequence, ()) {
  const auto letter = rc::gen::inRange<std::uint64_t>(0, 4);
  const auto a = *rc::gen::container<Values>(letter);
  const auto b = *rc::gen::container<Values>(letter);
  const auto alignment = longest_common_subsequence(a, b, 1'000'000);
  RC_ASSERT(alignment.has_value());
  expect_common(a, b, *alignment);
  RC_ASSERT(alignment->size() == longest_by_table(a, b));
}

RC_GTEST_PROP(Alignment, GivesUpExactlyAboveTheLimit, ()) {
  const auto letter = rc::gen::inRange<std::uint64_t>(0, 6);
  const auto a = *rc::gen::container<Values>(letter);
  const auto b = *rc::gen::container<Values>(letter);
  const auto unmatched = static_cast<std::uint32_t>(a.size() + b.size() - 2 * longest_by_table(a, b));
  RC_ASSERT(longest_common_subsequence(a, b, unmatched).has_value());
  if (unmatched > 0) RC_ASSERT(!longest_common_subsequence(a, b, unmatched - 1).has_value());
}

// By counting, as an oracle.
RC_GTEST_PROP(Alignment, PairsTheNthOccurrenceWithTheNth, ()) {
  const auto letter = rc::gen::map(rc::gen::inRange<std::uint64_t>(0, 9), [](std::uint64_t n) { return n << 40; });
  const auto a = *rc::gen::container<Values>(letter);
  const auto b = *rc::gen::container<Values>(letter);
  Alignment expected;
  for (std::uint32_t i = 0; i < a.size(); ++i) {
    auto before = std::count(a.begin(), a.begin() + i, a[i]);
    for (std::uint32_t j = 0; j < b.size(); ++j)
      if (b[j] == a[i] && before-- == 0) expected.emplace_back(i, j);
  }
  RC_ASSERT(pairs_by_occurrence(a, b) == expected);
}

TEST(Alignment, AHundredThousandOperatorsWithAFewHundredDifferences) {
  std::mt19937 random(1);
  Values a(100'000);
  for (std::uint64_t& value : a) value = random() % 50;
  Values b = a;
  for (int i = 0; i < 200; ++i) {
    b.erase(b.begin() + static_cast<std::ptrdiff_t>(random() % b.size()));
    b.insert(b.begin() + static_cast<std::ptrdiff_t>(random() % b.size()), 99);
  }
  const auto alignment = longest_common_subsequence(a, b, 1'000);
  ASSERT_TRUE(alignment.has_value());
  expect_common(a, b, *alignment);
  EXPECT_GE(alignment->size(), 99'800U);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
