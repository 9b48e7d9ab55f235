// The column of titles at the left, and the lines above groups of rows.
// Internal to gui/drawing.
#pragma once

#include <string>

#include "gui/drawing/row_drawing.h"

namespace memwall::gui {

// Background of the column; titles go on it.
void draw_title_column(const Theme& theme, double height, Figure& figure);
void draw_group_line(const std::string& group, const Theme& theme, double top, double width, Figure& figure);
void draw_row_title(const RowPlace& place, Figure& figure);

}  // namespace memwall::gui
