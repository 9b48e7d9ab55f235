#include "gui/drawing/row_drawing.h"

namespace memwall::gui {
void draw_difference_row(const RowPlace&, CanvasFrame&) {}
void hit_difference_row(const RowPlace&, double, double, Hit&) {}
}  // namespace memwall::gui
