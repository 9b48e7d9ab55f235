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
  theme.cursor = palette::kVermillion;
  theme.mark = palette::kPurple;
  theme.found = {0xff, 0x00, 0x90};
  theme.limit = palette::kLimit;
  theme.dimmed = {0xdc, 0xdc, 0xdc};
  return theme;
}

Theme dark_theme() {
  Theme theme;
  theme.dark = true;
  theme.background = {0x15, 0x16, 0x18};  // darker than usual: the figures' dark blue is seen on it
  theme.band = {0x22, 0x24, 0x27};
  theme.text = {0xec, 0xec, 0xec};
  theme.faint_text = {0xa8, 0xac, 0xb2};
  theme.grid = {0x2f, 0x32, 0x36};
  theme.axis = {0x7c, 0x80, 0x86};
  theme.border = {0x4a, 0x4d, 0x52};
  theme.selection = {0xff, 0xff, 0xff};
  theme.cursor = {0xff, 0x8c, 0x42};
  theme.mark = palette::kPurple;
  theme.found = {0xff, 0x5c, 0xb8};
  theme.limit = {0xff, 0x6b, 0x5a};
  theme.dimmed = {0x45, 0x48, 0x4d};
  return theme;
}

Color on_screen(const Theme& theme, Color color) {
  constexpr double kTooDark = 80, kLighter = 0.3;
  const double light = 0.2126 * color.red + 0.7152 * color.green + 0.0722 * color.blue;
  if (!theme.dark || light >= kTooDark) return color;
  const auto lighter = [](std::uint8_t value) { return static_cast<std::uint8_t>(value + (255 - value) * kLighter); };
  return {lighter(color.red), lighter(color.green), lighter(color.blue), color.opacity};
}

}  // namespace memwall::gui
