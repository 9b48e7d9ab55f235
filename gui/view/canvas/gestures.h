// What the mouse's gestures are worth, in the canvas and in the overview above it.
#pragma once

namespace memwall::gui {

inline constexpr double kDragThreshold = 4;   // logical pixels that a click may move
inline constexpr double kZoomPerNotch = 1.3;  // factor, of one notch of a wheel

}  // namespace memwall::gui
