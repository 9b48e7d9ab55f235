// The time ruler at the top, and the lines that it sends through the rows.
// Internal to gui/drawing.
#pragma once

#include <string>
#include <vector>

#include "gui/drawing/theme.h"
#include "gui/model/canvas_state.h"

namespace memwall::gui {

struct RulerTick {
  double x = 0;      // of the drawing area
  std::string text;  // "12.5 ms"
};
// In a unit that fits the visible length; as many as have room.
std::vector<RulerTick> ruler_ticks(const Viewport& viewport);

struct StepLine {
  double x = 0;
  std::string text;  // "step 3"
};
// Where the steps of the first run begin, of its first rank; none where they stand closer than is worth a line.
std::vector<StepLine> step_lines(const CanvasState& state);

// Behind the rows: ticks. Between `top` and `bottom`.
void draw_grid(const CanvasState& state, const Theme& theme, double top, double bottom, Figure& figure);
// Above the rows: boundaries of steps.
void draw_step_lines(const CanvasState& state, const Theme& theme, double top, double bottom, Figure& figure);
// The ruler itself, over the whole width.
void draw_ruler(const CanvasState& state, const Theme& theme, double width, Figure& figure);

}  // namespace memwall::gui
