// Is each quantile the one that its name says?
#include "sim/quantile.h"

#include <gtest/gtest.h>

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::vector<int> kTen{10, 9, 8, 7, 6, 5, 4, 3, 2, 1};

TEST(Quantile, LowerIsByNearestRank) {
  EXPECT_EQ(lower_quantile(kTen, 0.9), 9) << "the ninth of ten";
  EXPECT_EQ(lower_quantile(kTen, 0.91), 10);
  EXPECT_EQ(lower_quantile(kTen, 0.5), 5);
  EXPECT_EQ(lower_quantile(kTen, 0), 1);
  EXPECT_EQ(lower_quantile(kTen, 1), 10);
  EXPECT_EQ(lower_quantile(std::vector{7}, 0.9), 7);
}

TEST(Quantile, UpperIsTheNextWhereTheShareIsMetExactly) {
  EXPECT_EQ(upper_quantile(kTen, 0.1), 2);
  EXPECT_EQ(upper_quantile(kTen, 0.11), 2);
  EXPECT_EQ(upper_quantile(kTen, 1), 10);
  EXPECT_EQ(upper_median(kTen), 6);
  EXPECT_EQ(upper_median(std::vector{3, 1, 2}), 2);
}

TEST(Quantile, TheMedianOfAnEvenNumberIsTheMeanOfTwo) {
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({5}), 5);
}

TEST(Quantile, InterpolatedLiesOnTheLineBetweenTwo) {
  EXPECT_EQ(interpolated_quantile({4, 0, 2}, 0.5), 2);
  EXPECT_EQ(interpolated_quantile({4, 0, 2}, 0.25), 1);
  EXPECT_EQ(interpolated_quantile({4, 0, 2}, 1), 4);
  EXPECT_EQ(interpolated_quantile({5}, 0.9), 5);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
