// Does the solver give each flow what weighted max-min fairness says? Each case is algebra first.
#include "sim/engine/fair_share.h"

#include <gtest/gtest.h>

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Links = std::vector<std::pair<std::uint16_t, double>>;
constexpr double kHuge = 1e18;

std::vector<double> solve(const std::vector<std::pair<FlowDemand, Links>>& flows, std::vector<double> capacities) {
  std::vector<FlowDemand> demands;
  for (const auto& [demand, links] : flows) {
    demands.push_back(demand);
    demands.back().links = links;
  }
  return fair_share(demands, capacities);
}

// r0 + r1 <= 10, no caps  =>  5, 5
TEST(FairShare, EqualFlowsShareALinkEqually) {
  const auto r = solve({{{1, kHuge, {}}, {{0, 1}}}, {{1, kHuge, {}}, {{0, 1}}}}, {10});
  EXPECT_DOUBLE_EQ(r[0], 5);
  EXPECT_DOUBLE_EQ(r[1], 5);
}

// r0 + r1 <= 10, r0 <= 2  =>  2, 8
TEST(FairShare, WhatACappedFlowLeavesGoesToTheOther) {
  const auto r = solve({{{1, 2, {}}, {{0, 1}}}, {{1, kHuge, {}}, {{0, 1}}}}, {10});
  EXPECT_DOUBLE_EQ(r[0], 2);
  EXPECT_DOUBLE_EQ(r[1], 8);
}

// r0 / 3 = r1 / 1, r0 + r1 = 8  =>  6, 2
TEST(FairShare, WeightsSetTheRatio) {
  const auto r = solve({{{3, kHuge, {}}, {{0, 1}}}, {{1, kHuge, {}}, {{0, 1}}}}, {8});
  EXPECT_DOUBLE_EQ(r[0], 6);
  EXPECT_DOUBLE_EQ(r[1], 2);
}

// Duplex: each direction alone reaches 26; together (f1 + f2) * 26 = 1.6 * 26, weights 0.75 and 0.85.
TEST(FairShare, DuplexFactorsAreWeightsOnACommonLink) {
  const double both = 1.6 * 26;
  const auto r = solve({{{0.75, kHuge, {}}, {{0, 1}, {2, 1}}}, {{0.85, kHuge, {}}, {{1, 1}, {2, 1}}}}, {26, 26, both});
  EXPECT_NEAR(r[0], 0.75 * 26, 1e-9);
  EXPECT_NEAR(r[1], 0.85 * 26, 1e-9);
  const auto alone = solve({{{0.75, kHuge, {}}, {{0, 1}, {2, 1}}}}, {26, 26, both});
  EXPECT_NEAR(alone[0], 26, 1e-9);
}

// Link 0 (10): flows a, b. Link 1 (4): flows b, c.  =>  b = c = 2, a = 8
TEST(FairShare, TheTightestLinkDecidesFirst) {
  const auto r =
      solve({{{1, kHuge, {}}, {{0, 1}}}, {{1, kHuge, {}}, {{0, 1}, {1, 1}}}, {{1, kHuge, {}}, {{1, 1}}}}, {10, 4});
  EXPECT_DOUBLE_EQ(r[0], 8);
  EXPECT_DOUBLE_EQ(r[1], 2);
  EXPECT_DOUBLE_EQ(r[2], 2);
}

// 4 r0 + r1 <= 10 (four folded ranks behind one uplink)  =>  2, 2
TEST(FairShare, AFoldedFlowCountsWithItsMultiplicity) {
  const auto r = solve({{{1, kHuge, {}}, {{0, 4}}}, {{1, kHuge, {}}, {{0, 1}}}}, {10});
  EXPECT_DOUBLE_EQ(r[0], 2);
  EXPECT_DOUBLE_EQ(r[1], 2);
}

TEST(FairShare, NoFlowsNoRates) { EXPECT_TRUE(solve({}, {1}).empty()); }

TEST(FairShare, AFlowWithoutLinksRunsAtItsCap) {
  const auto r = solve({{{1, 7, {}}, {}}}, {1});
  EXPECT_DOUBLE_EQ(r[0], 7);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
