// Is the smallest budget found where what fits does so from some size on, within the resolution and few tries?
#include "study/smallest_budget.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace memwall {
namespace MEMWALL_TEST_FILE {

FitsWithin from(Bytes least, std::vector<Bytes>* asked = nullptr) {
  return [=](const std::vector<Bytes>& budgets) {
    std::vector<bool> fit;
    for (const Bytes budget : budgets) {
      if (asked != nullptr) asked->push_back(budget);
      fit.push_back(budget >= least);
    }
    return fit;
  };
}

TEST(SmallestBudget, IsWithinTheResolutionOfWhatFits) {
  for (Bytes least = 1; least <= 10'000; least += 37) {
    const SmallestBudget found = find_smallest_budget(0, 10'000, 100, 1, from(least));
    EXPECT_GE(found.bytes, least);
    EXPECT_LE(found.bytes, least + 100);
    EXPECT_LE(found.tries, 12u);
  }
}

TEST(SmallestBudget, TriesWholeUnitsWithinTheRangeAndNoneTwice) {
  std::vector<Bytes> asked;
  const SmallestBudget found = find_smallest_budget(MiB(3), MiB(900), MiB(1), MiB(1), from(MiB(77), &asked));
  EXPECT_EQ(found.bytes, MiB(77));
  for (const Bytes budget : asked) {
    EXPECT_EQ(budget % MiB(1), 0);
    EXPECT_GT(budget, MiB(3));
    EXPECT_LT(budget, MiB(900));
    EXPECT_EQ(std::count(asked.begin(), asked.end(), budget), 1);
  }
  EXPECT_EQ(found.tries, asked.size());
}

TEST(SmallestBudget, NothingIsTriedWhereTheRangeIsSmallAlready) {
  std::vector<Bytes> asked;
  EXPECT_EQ(find_smallest_budget(95, 100, 10, 1, from(0, &asked)).bytes, 100);
  EXPECT_EQ(find_smallest_budget(100, 100, 10, 1, from(0, &asked)).bytes, 100);
  EXPECT_TRUE(asked.empty());
}

// What fits by luck below what does not is told: it was tried, and fits.
TEST(SmallestBudget, AFitBelowAFailureIsTaken) {
  const auto lucky = [](const std::vector<Bytes>& budgets) {
    std::vector<bool> fit;
    for (const Bytes budget : budgets) fit.push_back(budget == 25 || budget >= 90);
    return fit;
  };
  EXPECT_EQ(find_smallest_budget(0, 100, 30, 1, lucky).bytes, 25);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
