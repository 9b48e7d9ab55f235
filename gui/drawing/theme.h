// The colours of the screen, light and dark. Words keep the colours of traces/figure/palette.h in
// both: figures and screen agree, and people with any common colour blindness tell them apart. Only
// what is too dark for a dark background is lighter there, in the same hue.
#pragma once

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
// The colour of a word, as it is seen on the theme's background.
Color on_screen(const Theme& theme, Color color);

}  // namespace memwall::gui
