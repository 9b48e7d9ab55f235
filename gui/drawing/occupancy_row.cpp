#include "gui/drawing/row_drawing.h"

namespace memwall::gui {
void draw_occupancy_row(const RowPlace&, CanvasFrame&) {}
void hit_occupancy_row(const RowPlace&, double, double, Hit&) {}
}  // namespace memwall::gui
