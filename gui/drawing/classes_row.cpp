#include "gui/drawing/row_drawing.h"

namespace memwall::gui {
void draw_classes_row(const RowPlace&, CanvasFrame&) {}
void hit_classes_row(const RowPlace&, double, double, Hit&) {}
}  // namespace memwall::gui
