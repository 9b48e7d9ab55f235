// What the colours of a frame mean: a strip of its own below the canvas, so that it covers nothing.
#pragma once

#include <set>
#include <string_view>

#include "gui/drawing/canvas_drawing.h"

namespace memwall::gui {

// What is not on the critical path while that is highlighted; stands in CanvasFrame::words like the palette's words.
inline constexpr std::string_view kDimmedWord = "dimmed";

// One line, or as many as the entries need at this width; its height follows. What a step does stands first, then what
// memory holds. Words that the legend does not know are left out: every word of the canvas is one that it knows.
Figure draw_legend(const std::set<std::string_view>& words, const Theme& theme, double width);
// The same below what a frame shows, which becomes higher by it.
void append_legend(CanvasFrame& frame, const Theme& theme);

}  // namespace memwall::gui
