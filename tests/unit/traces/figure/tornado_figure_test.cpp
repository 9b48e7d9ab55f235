// Does the widest bar stand first, and each from where to where it goes?
#include "traces/figure/tornado_figure.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "tests/support/drawn_figure.h"
#include "tests/support/random_chart.h"
#include "traces/figure/palette.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TornadoChart chart_of(const std::vector<TornadoBar>& bars) {
  TornadoChart chart{
      .title = "What moves step time", .subtitle = "a step", .outcome = {"step time", {Measure::seconds}}};
  chart.base = 0.1;
  chart.base_name = "the best point";
  chart.bars = bars;
  return chart;
}

std::vector<Rectangle> halves(const Figure& figure, Color color) {
  std::vector<Rectangle> found;
  for (const Rectangle& r : all_of<Rectangle>(figure))
    if (r.fill == color && r.height > 15) found.push_back(r);
  return found;
}

TEST(TornadoFigure, BarsGoFromTheBaseToTheirEndsTheWidestFirst) {
  const Figure figure = draw_tornado(chart_of({{"pcie", "32GB/s", {"64GB/s", 0.09}, {"16GB/s", 0.12}},
                                               {"hbm", "2TB/s", {"1TB/s", 0.15}, {"3TB/s", 0.08}, "1 of 4 failed"}}));
  expect_legible(figure);
  expect_within_page(figure);
  const auto less = halves(figure, palette::kBlue), more = halves(figure, palette::kOrange);
  ASSERT_EQ(less.size(), 2u);
  ASSERT_EQ(more.size(), 2u);
  const double base = more[0].x;
  for (const Rectangle& r : more) EXPECT_NEAR(r.x, base, 1e-9);
  for (const Rectangle& r : less) EXPECT_NEAR(r.x + r.width, base, 1e-9);
  EXPECT_NEAR(more[0].width / less[0].width, 2.5, 1e-9) << "hbm: 0.05 above, 0.02 below";
  EXPECT_NEAR(more[1].width / less[0].width, 1, 1e-9);
  EXPECT_LT(more[0].y, more[1].y);
  for (const char* text : {"64GB/s: 90 ms", "1TB/s: 150 ms", "base: 2TB/s", "1 of 4 failed", "the best point: 100 ms"})
    EXPECT_NE(text_with(all_of<Text>(figure), text), nullptr) << text;
}

TEST(TornadoFigure, EndsOnOneSideOfTheBaseAreBothToBeSeen) {
  const Figure figure = draw_tornado(chart_of({{"pcie", "32GB/s", {"16GB/s", 0.12}, {"8GB/s", 0.15}}}));
  const auto more = halves(figure, palette::kOrange);
  ASSERT_EQ(more.size(), 2u);
  EXPECT_GT(more[0].width, more[1].width) << "the shorter one lies upon the longer";
}

TEST(TornadoFigure, WhatMovesNothingHasItsRowAndNoBar) {
  const Figure figure = draw_tornado(chart_of({{"batch", "8", {"8", 0.1}, {"8", 0.1}}}));
  expect_legible(figure);
  EXPECT_TRUE(halves(figure, palette::kBlue).empty());
  EXPECT_TRUE(halves(figure, palette::kOrange).empty());
  EXPECT_NE(text_with(all_of<Text>(figure), "batch"), nullptr);
  EXPECT_NE(text_with(all_of<Text>(figure), "changes nothing"), nullptr);
}

TEST(TornadoFigure, CountsWhatIsNotDrawn) {
  std::vector<TornadoBar> bars;
  for (int i = 0; i < 50; ++i) bars.push_back({"q" + std::to_string(i), "1", {"0", 0.1}, {"2", 0.1 + i}});
  const Figure figure = draw_tornado(chart_of(bars));
  EXPECT_NE(text_with(all_of<Text>(figure), "and 10 with less"), nullptr);
  EXPECT_NE(text_with(all_of<Text>(figure), "q49"), nullptr);
}

RC_GTEST_PROP(TornadoFigure, StaysOnItsPageWhateverTheDataAre, (unsigned seed)) {
  RandomChart random(seed);
  TornadoChart chart{.title = random.name(), .subtitle = random.name(), .outcome = random.axis()};
  chart.base = random.number();
  chart.base_name = random.name();
  for (std::size_t n = random.below(random.one_in(8) ? 60 : 6); n > 0; --n)
    chart.bars.push_back({random.name(),
                          random.name(),
                          {random.name(), random.number()},
                          {random.name(), random.number()},
                          random.name()});
  const Figure figure = draw_tornado(chart);
  expect_drawn(figure);
  RC_ASSERT(!testing::Test::HasFailure());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
