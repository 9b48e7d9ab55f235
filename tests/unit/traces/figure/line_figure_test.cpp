// Does a line chart show each point where it is, and say what failed?
#include "traces/figure/line_figure.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <sstream>

#include "tests/support/figure_checks.h"
#include "tests/support/random_chart.h"
#include "tests/support/xml_faults.h"
#include "traces/figure/palette.h"
#include "traces/figure/svg.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

LineChart chart_of(const std::vector<LineSeries>& series) {
  LineChart chart{
      .title = "Step time by batch", .subtitle = "a step", .x = {"batch"}, .y = {"step time", {Measure::seconds}}};
  chart.series_name = "policy";
  chart.series = series;
  return chart;
}

// Lines of series: strokes of their colour without a filling.
std::vector<Polyline> joined(const Figure& figure, std::size_t series) {
  std::vector<Polyline> found;
  for (const Polyline& line : all_of<Polyline>(figure))
    if (line.stroke == plot::color_of_series(series) && line.fill == kNoColor) found.push_back(line);
  return found;
}

TEST(LineFigure, PointsStandByTheirValuesInTheOrderOfX) {
  const Figure figure =
      draw_lines(chart_of({{"none", {{3, 0.3}, {1, 0.1}, {2, 0.2}}}, {"full", {{1, 0.3}, {3, 0.1}}}}));
  expect_legible(figure);
  expect_within_page(figure);
  const auto lines = joined(figure, 0);
  ASSERT_EQ(lines.size(), 1u);
  const auto& at = lines[0].points;
  ASSERT_EQ(at.size(), 3u);
  EXPECT_LT(at[0].x, at[1].x);
  EXPECT_NEAR(at[1].x - at[0].x, at[2].x - at[1].x, 1e-9);
  EXPECT_GT(at[0].y, at[1].y) << "more is higher";
  EXPECT_NEAR(at[0].y - at[1].y, at[1].y - at[2].y, 1e-9);
  const auto other = joined(figure, 1);
  ASSERT_EQ(other.size(), 1u);
  EXPECT_EQ(other[0].points[0].y, at[2].y);
  EXPECT_NE(text_with(all_of<Text>(figure), "step time (ms)"), nullptr);
  EXPECT_NE(text_with(all_of<Text>(figure), "policy"), nullptr);
  EXPECT_NE(text_with(all_of<Text>(figure), "full"), nullptr);
}

TEST(LineFigure, EqualFactorsAreEqualSteps) {
  const Figure figure = draw_lines(chart_of({{"none", {{1, 1}, {2, 1}, {4, 1}, {8, 1}}}}));
  const auto at = joined(figure, 0).at(0).points;
  EXPECT_NEAR(at[1].x - at[0].x, at[3].x - at[2].x, 1e-9);
  for (const char* tick : {"1", "2", "4", "8", "batch (logarithmic)"})
    EXPECT_NE(text_with(all_of<Text>(figure), tick), nullptr) << tick;
}

TEST(LineFigure, WhatFailedBreaksTheLineAndIsMarkedAtTheBottom) {
  const Figure figure =
      draw_lines(chart_of({{"none", {{1, 1}, {2, 2}, {3, 0, PointState::failed, "no memory"}, {4, 2}, {5, 1}}},
                           {"full", {{1, 1}, {2, 1}}}}));
  expect_legible(figure);
  EXPECT_EQ(joined(figure, 0).size(), 2u);
  EXPECT_TRUE(has_title(figure, "none: no memory"));
  EXPECT_NE(text_with(all_of<Text>(figure), "failed"), nullptr);
  std::vector<Line> crosses;
  for (const Line& line : all_of<Line>(figure))
    if (line.stroke == plot::color_of_series(0)) crosses.push_back(line);
  ASSERT_EQ(crosses.size(), 2u);
  for (const Polyline& line : joined(figure, 0))
    for (const Point& at : line.points) EXPECT_LT(at.y, crosses[0].from.y) << "values stand above what failed";
}

TEST(LineFigure, WhatMissesTheConditionsIsHollow) {
  const Figure figure = draw_lines(chart_of({{"none", {{1, 1}, {2, 2, PointState::misses}}}}));
  int hollow = 0, full = 0;
  for (const Polyline& line : all_of<Polyline>(figure)) {
    hollow += line.fill == palette::kBackground ? 1 : 0;
    full += line.fill == plot::color_of_series(0) ? 1 : 0;
  }
  EXPECT_EQ(hollow, 1);
  EXPECT_EQ(full, 2) << "the other point, and the key";
  EXPECT_NE(text_with(all_of<Text>(figure), "hollow"), nullptr);
}

TEST(LineFigure, ManyPointsHaveFewMarkersButForThoseThatStandAlone) {
  LineSeries series{"none", {}};
  for (int i = 0; i < 500; ++i) series.points.push_back({i + 1.0, 1});
  series.points[101].detail = "alone";
  series.points[100].state = series.points[102].state = PointState::failed;
  const Figure figure = draw_lines(chart_of({series}));
  int markers = 0;
  for (const Polyline& line : all_of<Polyline>(figure)) markers += line.fill == plot::color_of_series(0) ? 1 : 0;
  EXPECT_LT(markers, 15);
  EXPECT_TRUE(has_title(figure, "none: alone"));
  EXPECT_EQ(joined(figure, 0).size(), 2u);
}

TEST(LineFigure, CategoriesStandEvenly) {
  LineChart chart = chart_of({{"a100", {{0, 1}, {1, 2}, {2, 1}}}});
  chart.categories = {"none", "checkpoint", "plan"};
  const Figure figure = draw_lines(chart);
  expect_legible(figure);
  for (const std::string& name : chart.categories) EXPECT_NE(text_with(all_of<Text>(figure), name), nullptr);
  const auto at = joined(figure, 0).at(0).points;
  EXPECT_NEAR(at[1].x - at[0].x, at[2].x - at[1].x, 1e-9);
}

TEST(LineFigure, WithoutAValueSaysSo) {
  EXPECT_NE(text_with(all_of<Text>(draw_lines(chart_of({}))), "no point has a value"), nullptr);
}

RC_GTEST_PROP(LineFigure, StaysOnItsPageWhateverTheDataAre, (unsigned seed)) {
  RandomChart random(seed);
  LineChart chart{.title = random.name(), .subtitle = random.name(), .x = random.axis(), .y = random.axis()};
  const std::size_t categories = random.one_in(2) ? 1 + random.below(30) : 0;
  for (std::size_t i = 0; i < categories; ++i) chart.categories.push_back(random.name());
  chart.series_name = random.name();
  chart.series.resize(random.one_in(8) ? 60 : random.below(5));
  for (LineSeries& series : chart.series) {
    series.name = random.name();
    for (std::size_t n = random.below(20); n > 0; --n)
      series.points.push_back({categories > 0 ? static_cast<double>(random.below(categories)) : random.number(),
                               random.number(), random.state(), random.name()});
  }
  const Figure figure = draw_lines(chart);
  expect_legible(figure);
  expect_within_page(figure);
  std::ostringstream once, again;
  write_svg(figure, once);
  write_svg(draw_lines(chart), again);
  RC_ASSERT(fault_in_xml(once.str()) == "");
  RC_ASSERT(once.str() == again.str());
  RC_ASSERT(!testing::Test::HasFailure());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
