// One row of the canvas: what each kind draws into its place, and what a point of it says.
// Internal to gui/drawing; canvas_drawing.h puts rows together.
#pragma once

#include <vector>

#include "gui/drawing/canvas_drawing.h"

namespace memwall::gui {

// Where a row is drawn. Rows draw within their place only; the background is there already.
struct RowPlace {
  const CanvasState& state;
  const Theme& theme;
  const CanvasRow& row;
  double left = 0, top = 0, width = 0, height = 0;  // of the drawing area, logical pixels
  bool stands_for_rank = false;                     // of a folded rank: its only row
  const OpenRun& run() const { return state.runs[row.run]; }
  // Times of the second run are drawn `state.shift` later.
  Duration shift() const { return row.run == 0 ? Duration{} : state.shift; }
  double x(Time time) const { return left + state.viewport.x(time + shift()); }
};

// Shapes go to `frame.figure`; blocks that are not in memory to `frame.missing`, in any order.
void draw_lane_row(const RowPlace& place, CanvasFrame& frame);
void draw_stall_row(const RowPlace& place, CanvasFrame& frame);
void draw_link_row(const RowPlace& place, CanvasFrame& frame);
void draw_occupancy_row(const RowPlace& place, CanvasFrame& frame);
void draw_residency_row(const RowPlace& place, CanvasFrame& frame);
void draw_classes_row(const RowPlace& place, CanvasFrame& frame);
void draw_difference_row(const RowPlace& place, CanvasFrame& frame);

// `hit.time` (of the row's run, its shift taken off) and `hit.row` are set; these add op, storage and text. `y` is that
// of the canvas.
void hit_lane_row(const RowPlace& place, double x, double y, Hit& hit);
void hit_stall_row(const RowPlace& place, double x, double y, Hit& hit);
void hit_link_row(const RowPlace& place, double x, double y, Hit& hit);
void hit_occupancy_row(const RowPlace& place, double x, double y, Hit& hit);
void hit_residency_row(const RowPlace& place, double x, double y, Hit& hit);
void hit_classes_row(const RowPlace& place, double x, double y, Hit& hit);
void hit_difference_row(const RowPlace& place, double x, double y, Hit& hit);

}  // namespace memwall::gui
