// When a stream stands still in the visible range, and why its next work began no earlier.
// Internal to gui/drawing.
#pragma once

#include <optional>
#include <vector>

#include "gui/drawing/lane_window.h"

namespace memwall::gui {

struct StallGap {
  Time begin{}, end{};
  WaitReason reason = WaitReason::none;
  OpId next = kNoOp;  // whose begin ends it; kNoOp zoomed out
};

struct StallWindow {
  LaneWindow lane;
  bool exact = false;
  std::vector<StallGap> gaps;  // ascending, those that touch the range; empty unless `exact`
};
// A gap whose work was called after it had begun is two: up to the end of the call, and the rest.
// Gaps longer than 0 before each work of the stream of `place`, from the start of the run on. After its last work a
// stream does not wait.
StallWindow find_stalls(const RowPlace& place);

}  // namespace memwall::gui
