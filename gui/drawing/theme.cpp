#include "gui/drawing/theme.h"

#include "traces/figure/palette.h"

namespace memwall::gui {

Theme light_theme() {
  Theme theme;
  theme.background = palette::kBackground;
  theme.band = palette::kBand;
  theme.text = palette::kText;
  theme.faint_text = palette::kFaintText;
  theme.grid = palette::kGrid;
  theme.axis = palette::kAxis;
  theme.border = palette::kLightGray;
  theme.selection = {0x00, 0x00, 0x00};
  theme.cursor = {0xf0, 0x18, 0x18};
  theme.mark = {0xb8, 0x00, 0xb8};
  theme.found = {0xff, 0x00, 0x90};
  theme.limit = palette::kLimit;
  theme.dimmed = {0xdc, 0xdc, 0xdc};
  return theme;
}

Theme dark_theme() {
  Theme theme;
  theme.dark = true;
  theme.background = palette::in_dark(palette::kBackground);
  theme.band = palette::in_dark(palette::kBand);
  theme.text = palette::in_dark(palette::kText);
  theme.faint_text = palette::in_dark(palette::kFaintText);
  theme.grid = palette::in_dark(palette::kGrid);
  theme.axis = palette::in_dark(palette::kAxis);
  theme.border = palette::in_dark(palette::kLightGray);
  theme.selection = {0xff, 0xff, 0xff};
  theme.cursor = {0xff, 0x33, 0x22};
  theme.mark = {0xc0, 0x30, 0xe0};
  theme.found = {0xff, 0x1e, 0x9a};
  theme.limit = palette::in_dark(palette::kLimit);
  theme.dimmed = {0x45, 0x48, 0x4d};
  return theme;
}

Color color_of(const Theme& theme, std::string_view word) {
  return palette::color_of(word, theme.dark ? palette::Page::dark : palette::Page::light);
}

}  // namespace memwall::gui
