// Do curves hold what separate runs give, and are crossings where lines between neighbours meet?
#include "study/explain/break_even.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

PointRecord record(double step_time, bool fits = true) {
  return {.fields = {{"step_time_s", step_time}, {"fits", fits ? 1 : 0}, {"peak_reserved_bytes", 1}}};
}

TEST(BreakEven, LinesCrossWhereTheirDifferenceIsNothing) {
  // Keep 1 s; recompute 2 s; offload falls from 3 s to 1.5 s: it passes recompute at 2/3 of the way.
  const std::vector<CurvePoint> points{{"10GB/s", {record(1), record(2), record(3)}},
                                       {"40GB/s", {record(1), record(2), record(1.5)}}};
  const std::vector<BreakEven> even = crossings_of(points, false);
  ASSERT_EQ(even.size(), 1u);
  EXPECT_EQ(even[0].choice, 2u);
  EXPECT_EQ(even[0].other, 1u);
  EXPECT_NEAR(*even[0].at, 10 + 30 * 2.0 / 3, 1e-9);
  const std::vector<BreakEven> logarithmic = crossings_of(points, true);
  EXPECT_NEAR(*logarithmic[0].at, 10 * std::pow(4, 2.0 / 3), 1e-9);
  EXPECT_TRUE(crossings_of({points[0], points[0]}, false).empty());
}

TEST(BreakEven, SaysWhereAWayNoLongerFitsAndLeavesOutWhatWasRefused) {
  const PointRecord refused{.error = "no."};
  const std::vector<BreakEven> even =
      crossings_of({{"1", {record(1), record(2), refused}}, {"2", {record(1, false), record(2), record(0.5)}}}, false);
  ASSERT_EQ(even.size(), 1u);
  EXPECT_EQ(even[0].choice, 0u);
  EXPECT_EQ(even[0].other, 0u);
  EXPECT_FALSE(even[0].fits_after);
  EXPECT_EQ(even[0].before, "1");
}

TEST(BreakEven, EachPointOfACurveIsItsScenario) {
  Study study;
  ScenarioPoints points(study, nullptr, 2);
  const Scenario scenario{.step = {"gpt2-124m:layers=2,width=64,heads=2"},
                          .machine = "a100-sxm-40gb",
                          .policies = {"checkpoint:mode=sqrt"}};
  const BreakEvenCurve curve = break_even_curve(points, scenario, parse_axis("sequence=64|128"));
  ASSERT_EQ(curve.points.size(), 2u);
  for (const CurvePoint& point : curve.points)
    for (std::size_t w = 0; w < kChoices.size(); ++w) {
      Scenario alone{.step = {scenario.step[0] + ",sequence=" + point.value}, .machine = scenario.machine};
      if (w > 0) alone.policies = {kChoicePolicies[w]};
      EXPECT_DOUBLE_EQ(*point.choices[w].find("step_time_s"),
                       to_seconds(mean_step(study.run(alone, {.record = false}).run)))
          << point.value << " " << kChoices[w] << ": the scenario's own plan is left out";
    }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
