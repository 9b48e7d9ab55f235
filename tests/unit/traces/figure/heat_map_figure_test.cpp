// Does a heat map's colour say its value, and its marks what is not one?
#include "traces/figure/heat_map_figure.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "tests/support/color_difference.h"
#include "tests/support/drawn_figure.h"
#include "tests/support/random_chart.h"
#include "traces/figure/palette.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

HeatMapChart chart_of(const std::vector<HeatCell>& cells) {
  HeatMapChart chart{.title = "Step time by batch and pcie",
                     .subtitle = "a step",
                     .x_name = "batch",
                     .y_name = "pcie",
                     .columns = {"1", "2", "4"},
                     .rows = {"32GB/s", "16GB/s"},
                     .value = {"step time", {Measure::seconds}}};
  chart.cells = cells;
  return chart;
}

double lightness(Color c) { return 0.2126 * c.red + 0.7152 * c.green + 0.0722 * c.blue; }

TEST(HeatColor, IsOrderedByLightness) {
  for (int i = 1; i <= 64; ++i)  // each channel is rounded
    EXPECT_GT(lightness(heat_color(i / 64.0)), lightness(heat_color((i - 1) / 64.0))) << i;
  EXPECT_GT(color_difference(heat_color(0), heat_color(1)), 60);
  EXPECT_EQ(heat_color(-1), heat_color(0));
  EXPECT_EQ(heat_color(2), heat_color(1));
}

// Cells by their colours, in the order of the chart; the ramp's steps are narrow.
std::vector<Rectangle> cells_of(const Figure& figure) {
  std::vector<Rectangle> found;
  for (const Rectangle& r : all_of<Rectangle>(figure))
    if (r.width > 60) found.push_back(r);
  return found;
}

TEST(HeatMapFigure, ColourAndNumberSayTheValue) {
  const Figure figure = draw_heat_map(chart_of({{0.1}, {0.2}, {0.3}, {0.2}, {0.3}, {0.5}}));
  expect_legible(figure);
  expect_within_page(figure);
  const auto cells = cells_of(figure);
  ASSERT_EQ(cells.size(), 6u);
  EXPECT_EQ(cells[0].fill, heat_color(0));
  EXPECT_EQ(cells[5].fill, heat_color(1));
  EXPECT_EQ(cells[1].fill, heat_color(0.25));
  EXPECT_EQ(cells[1].fill, cells[3].fill);
  EXPECT_LT(cells[0].x, cells[1].x);
  EXPECT_LT(cells[0].y, cells[3].y) << "rows from the top down";
  for (const char* text : {"100 ms", "500 ms", "16GB/s", "batch", "step time (ms)"})
    EXPECT_NE(text_with(all_of<Text>(figure), text), nullptr) << text;
}

TEST(HeatMapFigure, ValuesFarApartHaveLogarithmicColours) {
  const Figure figure = draw_heat_map(chart_of({{0.001}, {0.01}, {0.1}, {0.1}, {0.1}, {0.1}}));
  EXPECT_EQ(cells_of(figure)[1].fill, heat_color(0.5));
}

TEST(HeatMapFigure, WhatFailedAndWhatMissesIsMarkedAndTheBestIsFramed) {
  HeatMapChart chart =
      chart_of({{0.1, PointState::misses}, {0.2}, {0.3}, {{}, PointState::failed, "no memory"}, {0.3}, {}});
  chart.more_is_better = false;
  const Figure figure = draw_heat_map(chart);
  expect_legible(figure);
  for (const char* text : {"failed", "misses conditions", "the least"})
    EXPECT_NE(text_with(all_of<Text>(figure), text), nullptr) << text;
  EXPECT_TRUE(has_title(figure, "no memory"));
  const auto frames = all_of<Polyline>(figure);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].points[0].x, cells_of(figure)[1].x) << "the least of what meets the conditions";
  EXPECT_EQ(cells_of(figure)[5].fill, palette::kBand) << "not part of the study";
}

RC_GTEST_PROP(HeatMapFigure, StaysOnItsPageWhateverTheDataAre, (unsigned seed)) {
  RandomChart random(seed);
  HeatMapChart chart{.title = random.name(),
                     .subtitle = random.name(),
                     .x_name = random.name(),
                     .y_name = random.name(),
                     .columns = {},
                     .rows = {},
                     .value = random.axis()};
  const std::size_t many = random.one_in(6) ? 150 : 9;
  for (std::size_t n = 1 + random.below(many); n > 0; --n) chart.columns.push_back(random.name());
  for (std::size_t n = 1 + random.below(many); n > 0; --n) chart.rows.push_back(random.name());
  if (random.one_in(2)) chart.more_is_better = random.one_in(2);
  const bool is_empty = random.one_in(10);
  for (std::size_t n = chart.columns.size() * chart.rows.size(); n > 0; --n) {
    HeatCell cell{random.number(), random.state(), random.name()};
    if (is_empty || cell.state == PointState::failed || random.one_in(9)) cell.value.reset();
    chart.cells.push_back(cell);
  }
  const Figure figure = draw_heat_map(chart);
  expect_drawn(figure);
  RC_ASSERT(!testing::Test::HasFailure());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
