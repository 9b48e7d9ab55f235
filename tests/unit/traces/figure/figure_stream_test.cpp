// Is the figure that is read the figure that was written, and is anything else refused?
#include "traces/figure/figure_stream.h"

#include <gtest/gtest.h>

#include <sstream>

#include "sim/error.h"
#include "traces/figure/palette.h"
#include "traces/figure/svg.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Figure every_item() {
  Figure figure{960.5, 1.0 / 3, "a \"title\"\n", {}};
  figure.add(GroupBegin{"outer"});
  figure.add(Rectangle{0.1, 2, 3, 4, palette::kBlue, palette::kText, 5});
  figure.add(Line{{1, 2}, {3.25, -4}, {1, 2, 3, 4}, 0.75, true}, "hover");
  figure.add(Polyline{{{0, 0}, {1, 1e-9}, {2, 5}}, palette::kOrange, 2, palette::kGreen});
  figure.add(Text{{5, 6}, "\xc2\xb5s \xff <", 9.5, Anchor::end, palette::kText, true, 90});
  figure.add(GroupEnd{});
  return figure;
}

std::string svg_of(const Figure& figure) {
  std::ostringstream out;
  write_svg(figure, out);
  return out.str();
}

TEST(FigureStream, WhatIsReadIsWhatWasWritten) {
  const Figure figure = every_item(), read = figure_from_bytes(figure_bytes(figure));
  EXPECT_EQ(read.width, figure.width);
  EXPECT_EQ(read.height, figure.height);
  EXPECT_EQ(read.title, figure.title);
  EXPECT_EQ(svg_of(read), svg_of(figure));
  EXPECT_EQ(figure_bytes(read), figure_bytes(figure));
  const auto* line = std::get_if<Polyline>(&read.items[5]);
  ASSERT_NE(line, nullptr);
  EXPECT_EQ(line->points[1].y, 1e-9);  // SVG would not tell
}

TEST(FigureStream, EveryCutIsRefused) {
  const std::string bytes = figure_bytes(every_item());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(figure_from_bytes(std::string_view(bytes).substr(0, size)), InputError) << size;
  EXPECT_THROW(figure_from_bytes(bytes + "x"), InputError);
}

TEST(FigureStream, DamageIsRefusedOrGivesAFigureThatCanBeDrawn) {
  const std::string bytes = figure_bytes(every_item());
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (const int flip : {1, 0x80, 0xff}) {
      std::string bent = bytes;
      bent[i] = static_cast<char>(bent[i] ^ flip);
      try {
        EXPECT_FALSE(svg_of(figure_from_bytes(bent)).empty());
      } catch (const InputError& error) {
        EXPECT_NE(std::string(error.what()).find("at byte"), std::string::npos);
      }
    }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
