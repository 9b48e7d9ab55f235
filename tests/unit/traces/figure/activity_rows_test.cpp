// Do the rows below a chart show when work was done, what came too early and what too late?
#include "traces/figure/activity_rows.h"

#include <gtest/gtest.h>

#include "tests/support/figure_checks.h"
#include "traces/figure/memory_figure.h"
#include "traces/figure/palette.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// 100 us with one row in which `spans` stand.
MemoryChart chart_with(std::vector<ActivitySpan> spans) {
  MemoryChart chart{.title = "Memory",
                    .subtitle = "",
                    .begin = Time{},
                    .end = microseconds(100),
                    .times = {Time{}, microseconds(50)},
                    .layers = {{"activation", {1000, 2000}}},
                    .outlines = {}};
  chart.activity = {{"fetched", "fetched", palette::kOrange, std::move(spans)}};
  return chart;
}

std::vector<Rectangle> in_color(const Figure& figure, Color color) {
  std::vector<Rectangle> found = all_of<Rectangle>(figure);
  std::erase_if(found, [&](const Rectangle& r) { return !(r.fill == color) || r.height > plot::kActivityRow; });
  return found;
}

ActivitySpan span(int begin, int end, ActivityState state, const std::string& text) {
  return {microseconds(begin), microseconds(end), state, 100, text};
}

TEST(ActivityRows, ASpanStandsAtItsTimeWithItsText) {
  const Figure figure = draw_memory(chart_with({span(20, 30, ActivityState::works, "a storage: fetched"),
                                                span(30, 60, ActivityState::waits, "30 us before its use"),
                                                span(80, 90, ActivityState::late, "its use waits for it")}));
  const std::vector<Rectangle> works = in_color(figure, palette::kOrange);
  ASSERT_EQ(works.size(), 1u);
  const std::vector<Rectangle> rows = in_color(figure, palette::kBand);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_NEAR(works[0].x, rows[0].x + 0.2 * rows[0].width, 1e-6);
  EXPECT_NEAR(works[0].width, 0.1 * rows[0].width, 1e-6);
  const std::vector<Rectangle> late = in_color(figure, palette::kLimit);
  ASSERT_GE(late.size(), 1u);
  EXPECT_NEAR(late.back().x, rows[0].x + 0.8 * rows[0].width, 1e-6);
  for (const char* text : {"a storage: fetched", "30 us before its use", "its use waits for it"})
    EXPECT_TRUE(has_title(figure, text)) << text;
  const std::vector<Text> texts = all_of<Text>(figure);
  EXPECT_NE(text_with(texts, "fetched"), nullptr);
  EXPECT_NE(text_with(texts, "arrived, not used yet"), nullptr) << "the legend says what gray means";
  EXPECT_NE(text_with(texts, "its use waited for it"), nullptr);
  expect_legible(figure);
}

TEST(ActivityRows, SpansWithoutRoomBetweenThemAreOneThatSaysHowMany) {
  std::vector<ActivitySpan> spans;
  for (int i = 0; i < 50; ++i) spans.push_back(span(i, i + 1, ActivityState::works, "alone"));
  spans.push_back(span(70, 71, ActivityState::works, "apart"));
  const Figure figure = draw_memory(chart_with(std::move(spans)));
  EXPECT_EQ(in_color(figure, palette::kOrange).size(), 2u);
  EXPECT_TRUE(has_title(figure, "50 fetched, 5.00 kB"));
  EXPECT_TRUE(has_title(figure, "apart"));
  EXPECT_FALSE(has_title(figure, "alone"));
}

TEST(ActivityRows, WhatLiesOutsideOfTheWindowIsLeftOut) {
  MemoryChart chart =
      chart_with({span(-20, -10, ActivityState::works, "before"), span(120, 130, ActivityState::works, "behind"),
                  span(-5, 5, ActivityState::works, "across")});
  const Figure figure = draw_memory(chart);
  const std::vector<Rectangle> works = in_color(figure, palette::kOrange);
  ASSERT_EQ(works.size(), 1u);
  EXPECT_NEAR(works[0].width, 0.05 * in_color(figure, palette::kBand).front().width, 1e-6);
  const double with = figure.height;
  chart.activity.clear();
  EXPECT_NEAR(draw_memory(chart).height, with - plot::kAboveActivity - plot::kActivityRow, 1e-6);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
