// Do predicted peaks say in which memories a job fits?
#include "validate/published/capacity_pairs.h"

#include <gtest/gtest.h>

namespace memwall {
namespace MEMWALL_TEST_FILE {

PublishedResult peak(double predicted, const std::string& table = "a", const std::string& metric = "peak active") {
  PublishedResult r;
  r.table = table;
  r.metric = metric;
  r.measured = 100;
  r.predicted = predicted;
  return r;
}

// 100 fits into 105.26, and does not into 95.24.
TEST(CapacityPairs, TellBothKindsWhereThePredictionIsNear) {
  const std::vector<CapacityPairs> pairs = capacity_pairs({peak(105), peak(96), peak(106), peak(95), peak(90)});
  ASSERT_EQ(pairs.size(), 2u);
  for (const CapacityPairs& one : pairs) {
    EXPECT_EQ(one.rows, 5u);
    EXPECT_EQ(one.fit_right, 4u) << "106 is said not to fit";
    EXPECT_EQ(one.no_fit_right, 3u) << "95 and 90 are said to fit";
    EXPECT_DOUBLE_EQ(one.fit_recall(), 0.8);
  }
  EXPECT_EQ(pairs.back().table, "");
}

TEST(CapacityPairs, AreMadeOfPredictedPeaksAlone) {
  PublishedResult refused = peak(100);
  refused.why_not = "not implemented";
  EXPECT_TRUE(capacity_pairs({refused, peak(100, "a", "step time")}).empty());
  EXPECT_EQ(capacity_pairs({peak(100), peak(100, "b", "peak on device")}).size(), 3u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
