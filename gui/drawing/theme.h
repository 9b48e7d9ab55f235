// The colours of the screen, light and dark. Words have those of traces/figure/palette.h: figures and
// screen agree. What a person chooses and marks has colours of its own.
#pragma once

#include <string_view>

#include "traces/figure/figure.h"

namespace memwall::gui {

inline constexpr double kSmallText = 9.5;  // logical pixels: the font's size of labels within rows

struct Theme {
  bool dark = false;
  Color background, band;  // of the canvas, and of every second row
  Color text, faint_text;
  Color grid, axis, border;
  Color selection, cursor, mark, found, limit;
  Color dimmed;           // what does not lie on the critical path
  double font_size = 11;  // logical pixels
};
Theme light_theme();
Theme dark_theme();
// The colour of a word, as palette::color_of has it for the theme's page.
Color color_of(const Theme& theme, std::string_view word);

}  // namespace memwall::gui
