// Can a figure that was made for white paper be read on a dark page?
#include "traces/figure/dark_figure.h"

#include <gtest/gtest.h>

#include "tests/support/color_difference.h"
#include "traces/figure/memory_figure.h"
#include "traces/figure/palette.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const Color kDarkPage = palette::in_dark(palette::kBackground);

TEST(DarkFigure, PaperAndInkChangePlaces) {
  Figure light{100, 50, "", {}};
  light.add(Text{{5, 10}, "title", 11, Anchor::start, palette::kText});
  light.add(Line{{0, 20}, {100, 20}, palette::kGrid});
  const Figure dark = dark_figure(light);
  ASSERT_EQ(dark.items.size(), 3u);
  const auto& page = std::get<Rectangle>(dark.items[0]);
  EXPECT_EQ(page.fill, kDarkPage);
  EXPECT_EQ(page.width, 100);
  EXPECT_EQ(page.height, 50);
  EXPECT_GT(color_difference(std::get<Text>(dark.items[1]).color, kDarkPage), 70);
  EXPECT_LT(color_difference(std::get<Line>(dark.items[2]).stroke, kDarkPage), 25) << "a grid stands back";
}

TEST(DarkFigure, WordsKeepTheirMeaning) {
  for (const char* word : {"forward", "copy", "idle", "activation", "rounding"})
    EXPECT_EQ(palette::in_dark(palette::color_of(word)), palette::color_of(word, palette::Page::dark)) << word;
  Color thin = palette::color_of("copy");
  thin.opacity = 70;
  EXPECT_EQ(palette::in_dark(thin).opacity, 70);
}

TEST(DarkFigure, TextOnAShapeSuitsTheShapesNewColour) {
  for (const char* word : {"idle", "forward", "input", "compute"}) {
    const Color fill = palette::color_of(word);
    Figure light{100, 50, "", {}};
    light.add(Polyline{{{0, 0}, {100, 0}, {100, 50}, {0, 50}}, kNoColor, 1, fill});
    light.add(Rectangle{60, 0, 40, 50, palette::kYellow});
    light.add(Text{{5, 30}, word, 11, Anchor::start, palette::text_on(fill)});
    const Figure dark = dark_figure(light);
    EXPECT_EQ(std::get<Text>(dark.items.back()).color, palette::text_on(palette::color_of(word, palette::Page::dark)))
        << word;
  }
}

TEST(DarkFigure, NothingOfAMemoryChartIsDarkOnDark) {
  MemoryChart chart{.title = "Memory of hbm",
                    .subtitle = "a step",
                    .begin = Time{},
                    .end = microseconds(100),
                    .times = {Time{}, microseconds(50)},
                    .layers = {{"activation", {10, 20}}, {"parameter", {30, 30}}},
                    .outlines = {},
                    .capacity = 60};
  const Figure dark = dark_figure(draw_memory(chart));
  for (const Item& item : dark.items)
    if (const auto* text = std::get_if<Text>(&item)) {
      EXPECT_GT(color_difference(text->color, kDarkPage), 40) << text->text;
    }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
