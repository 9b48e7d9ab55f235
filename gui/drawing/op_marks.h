// What is drawn over rows for single ops: the chosen one and its counterpart in the other run, lines to what let it
// begin and to what it let begin, and what a search found. Internal to gui/drawing.
#pragma once

#include <vector>

#include "gui/drawing/row_drawing.h"

namespace memwall::gui {

// `rows`: those that are drawn. Blocks that are not in memory go to `frame.missing`.
void draw_op_marks(const std::vector<RowPlace>& rows, CanvasFrame& frame);
// In the ruler: where what a search found stands, also of blocks that are not in memory (then about where).
void draw_found_ticks(const CanvasState& state, const Theme& theme, Figure& figure);

}  // namespace memwall::gui
