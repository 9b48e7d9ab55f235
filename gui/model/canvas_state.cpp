#include "gui/model/canvas_state.h"

namespace memwall::gui {

TimeRange CanvasState::whole() const {
  TimeRange range;
  for (const OpenRun& run : runs) range.end = std::max(range.end, run.whole().end);
  return range;
}

}  // namespace memwall::gui
