#include "gui/model/canvas_state.h"

namespace memwall::gui {

TimeRange CanvasState::whole() const {
  TimeRange range;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Duration later = i == 0 ? Duration{} : shift;
    range.begin = std::min(range.begin, Time{} + later);
    range.end = std::max(range.end, runs[i].whole().end + later);
  }
  return range;
}

}  // namespace memwall::gui
