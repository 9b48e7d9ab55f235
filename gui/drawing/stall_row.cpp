#include "gui/drawing/row_drawing.h"

namespace memwall::gui {
void draw_stall_row(const RowPlace&, CanvasFrame&) {}
void hit_stall_row(const RowPlace&, double, double, Hit&) {}
}  // namespace memwall::gui
