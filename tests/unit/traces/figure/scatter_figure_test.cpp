// Is the Pareto front that of the points, and drawn as what it reaches?
#include "traces/figure/scatter_figure.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "tests/support/drawn_figure.h"
#include "tests/support/random_chart.h"
#include "traces/figure/palette.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// By its definition, every pair looked at.
std::set<std::size_t> front_by_definition(const std::vector<ScatterPoint>& points, bool more_x, bool more_y) {
  const auto x = [&](const ScatterPoint& p) { return more_x ? -p.x : p.x; };
  const auto y = [&](const ScatterPoint& p) { return more_y ? -p.y : p.y; };
  std::set<std::size_t> front;
  for (std::size_t i = 0; i < points.size(); ++i) {
    bool beaten = !points[i].meets;
    for (const ScatterPoint& o : points)
      beaten |= o.meets && x(o) <= x(points[i]) && y(o) <= y(points[i]) && (x(o) < x(points[i]) || y(o) < y(points[i]));
    if (!beaten) front.insert(i);
  }
  return front;
}

RC_GTEST_PROP(ParetoFront, IsWhatNothingBeats, (unsigned seed)) {
  RandomChart random(seed);
  std::vector<ScatterPoint> points(random.below(40));
  for (ScatterPoint& point : points)
    point = {"", static_cast<double>(random.below(12)), static_cast<double>(random.below(12)), !random.one_in(4)};
  for (const bool more_x : {false, true})
    for (const bool more_y : {false, true}) {
      const std::vector<std::size_t> front = pareto_front(points, more_x, more_y);
      RC_ASSERT(std::set<std::size_t>(front.begin(), front.end()) == front_by_definition(points, more_x, more_y));
      RC_ASSERT(std::ranges::is_sorted(front, {}, [&](std::size_t i) { return points[i].x; }));
    }
}

ScatterChart chart_of(const std::vector<ScatterPoint>& points) {
  ScatterChart chart{.title = "Step time against peak",
                     .subtitle = "a step",
                     .x = {"peak", {Measure::bytes}},
                     .y = {"step time", {Measure::seconds}}};
  chart.series_name = "policy";
  chart.series = {"none", "full"};
  chart.points = points;
  return chart;
}

std::vector<Point> stairs_of(const Figure& figure) {
  for (const Polyline& line : all_of<Polyline>(figure))
    if (line.stroke == palette::kText && line.fill == kNoColor) return line.points;
  return {};
}

int edged(const Figure& figure) {
  int count = 0;
  for (const Polyline& line : all_of<Polyline>(figure)) count += line.stroke == palette::kText && line.fill != kNoColor;
  return count;
}

TEST(ScatterFigure, TheFrontIsAStaircaseThroughItsNamedPoints) {
  const Figure figure = draw_scatter(chart_of({{"slow", 1e9, 3},
                                               {"middle", 2e9, 2, true, 1},
                                               {"beaten", 3e9, 2.5},
                                               {"fast", 4e9, 1, true, 1},
                                               {"refused", 1e9, 1, false}}));
  expect_legible(figure);
  expect_within_page(figure);
  EXPECT_EQ(edged(figure), 3);
  const std::vector<Point> stairs = stairs_of(figure);
  ASSERT_EQ(stairs.size(), 7u);
  for (std::size_t i = 1; i < stairs.size(); ++i)
    EXPECT_TRUE(stairs[i].x == stairs[i - 1].x || stairs[i].y == stairs[i - 1].y) << "steps, no slopes";
  EXPECT_TRUE(std::ranges::is_sorted(stairs, {}, &Point::x));
  EXPECT_TRUE(std::ranges::is_sorted(stairs, {}, &Point::y)) << "down, which is towards larger y";
  for (const char* text : {"middle", "1 GB, 3 s", "peak (GB), less is better", "hollow"})
    EXPECT_NE(text_with(all_of<Text>(figure), text), nullptr) << text;
  EXPECT_EQ(text_with(all_of<Text>(figure), "beaten"), nullptr) << "is told on hovering";
  EXPECT_TRUE(has_title(figure, "beaten: 3 GB, 2.5 s"));
}

// Whatever is better: no point that meets the conditions stands beyond the stairs, on the better side.
TEST(ScatterFigure, TheStairsHaveEveryPointOnTheWorseSide) {
  for (const bool more_x : {false, true})
    for (const bool more_y : {false, true}) {
      ScatterChart chart = chart_of({});
      chart.more_x_is_better = more_x;
      chart.more_y_is_better = more_y;
      RandomChart random(7);
      for (int i = 0; i < 60; ++i)
        chart.points.push_back({"p", 1e9 + 1e7 * static_cast<double>(random.below(500)),
                                1 + 0.01 * static_cast<double>(random.below(200))});
      const Figure figure = draw_scatter(chart);
      const std::vector<Point> stairs = stairs_of(figure);
      const bool falls = more_x == more_y;
      for (std::size_t i = 1; i < stairs.size(); ++i) {
        EXPECT_GE(stairs[i].x, stairs[i - 1].x);
        if (falls)
          EXPECT_GE(stairs[i].y, stairs[i - 1].y);
        else
          EXPECT_LE(stairs[i].y, stairs[i - 1].y);
      }
      const auto front = pareto_front(chart.points, more_x, more_y);
      EXPECT_EQ(edged(figure), static_cast<int>(front.size()));
      EXPECT_NE(text_with(all_of<Text>(figure), more_x ? "(GB), more is better" : "(GB), less is better"), nullptr);
    }
}

TEST(ScatterFigure, PointsThatLookAlikeAreDrawnOnce) {
  std::vector<ScatterPoint> points(20'000, {"same", 1e9, 1});
  points.push_back({"other", 2e9, 2});
  const Figure figure = draw_scatter(chart_of(points));
  EXPECT_LT(all_of<GroupBegin>(figure).size(), 21'000u);
  int plain = 0;
  for (const Polyline& line : all_of<Polyline>(figure)) plain += line.stroke == palette::kBackground;
  EXPECT_EQ(plain, 4) << "two places, and two series in the key";
}

RC_GTEST_PROP(ScatterFigure, StaysOnItsPageWhateverTheDataAre, (unsigned seed)) {
  RandomChart random(seed);
  ScatterChart chart{.title = random.name(), .subtitle = random.name(), .x = random.axis(), .y = random.axis()};
  chart.more_x_is_better = random.one_in(2);
  chart.more_y_is_better = random.one_in(2);
  chart.series_name = random.name();
  for (std::size_t n = 1 + random.below(random.one_in(8) ? 60 : 5); n > 0; --n) chart.series.push_back(random.name());
  for (std::size_t n = random.below(50); n > 0; --n)
    chart.points.push_back(
        {random.name(), random.number(), random.number(), !random.one_in(4), random.below(chart.series.size())});
  const Figure figure = draw_scatter(chart);
  expect_drawn(figure);
  RC_ASSERT(!testing::Test::HasFailure());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
