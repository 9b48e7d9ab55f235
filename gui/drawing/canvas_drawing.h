// The canvas as a figure: the same list of shapes for the screen, an image and a test.
//
// A frame draws what is in memory. Where spans are missing it draws their level of detail and
// names their blocks; draw again once they are loaded.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gui/drawing/theme.h"
#include "gui/model/canvas_state.h"
#include "traces/figure/figure.h"

namespace memwall::gui {

inline constexpr double kTitleWidth = 220;  // of the column of lane titles, logical pixels
inline constexpr double kRulerHeight = 26;  // of the time ruler at the top
inline constexpr double kOverviewHeight = 64;

struct MissingBlock {
  std::uint8_t run = 0;
  std::uint32_t block = 0;
  bool operator==(const MissingBlock&) const = default;
  auto operator<=>(const MissingBlock&) const = default;
};

struct CanvasFrame {
  Figure figure;
  std::vector<MissingBlock> missing;  // ascending, without repeats
  std::set<std::string_view> words;   // whose colours are in the picture: what a legend has to explain
  // Why something could not be read, in a sentence: it is left out of the picture. "" where all could.
  std::string problem;
};

// Ruler, titles and rows, selection, marks. `width`, `height`: of the whole canvas, in logical pixels;
// state.viewport.width() must be width - kTitleWidth. REQUIRES: width > kTitleWidth, height > kRulerHeight.
CanvasFrame draw_canvas(const CanvasState& state, const Theme& theme, double width, double height);

// The whole run in a strip: memory of the first tier and its peak under the capacity, how busy the streams are, and
// the visible range. Its x axis is the whole run, from 0 to `width`.
Figure draw_overview(const CanvasState& state, const Theme& theme, double width, double height);

// What lies under a point of the canvas.
struct Hit {
  std::optional<std::size_t> row;  // index into state.rows.rows()
  bool on_title = false;           // left of the drawing area
  std::optional<OpRef> op;
  std::optional<StorageRef> storage;
  std::optional<std::size_t> bookmark;  // whose flag in the ruler it is
  Time time{};
  std::string text;  // for the pointer: name, kind, duration, why it waited; "" where nothing is
};
Hit hit_test(const CanvasState& state, double x, double y);

}  // namespace memwall::gui
