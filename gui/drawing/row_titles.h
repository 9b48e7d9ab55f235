// The column of titles at the left, and the lines above groups of rows.
// Internal to gui/drawing.
#pragma once

#include <string>

#include "gui/drawing/row_drawing.h"

namespace memwall::gui {

// Background of the column; titles go on it.
void draw_title_column(const Theme& theme, double height, Figure& figure);
// Above the row of `place`, which begins a group, over the whole `width` of the canvas.
void draw_group_line(const RowPlace& place, double width, Figure& figure);
void draw_row_title(const RowPlace& place, Figure& figure);
// The whole title of a row, however it is cut; of the row that stands for a folded rank, what is said of that.
std::string whole_title(const RowPlace& place);

}  // namespace memwall::gui
