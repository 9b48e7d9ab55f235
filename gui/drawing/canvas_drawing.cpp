#include "gui/drawing/canvas_drawing.h"

namespace memwall::gui {
CanvasFrame draw_canvas(const CanvasState&, const Theme&, double width, double height) {
  return {{width, height, "", {}}, {}};
}
Figure draw_overview(const CanvasState&, const Theme&, double width, double height) { return {width, height, "", {}}; }
Hit hit_test(const CanvasState&, double, double) { return {}; }
}  // namespace memwall::gui
