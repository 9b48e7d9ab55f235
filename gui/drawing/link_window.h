// The flow over a link in the visible range. Internal to gui/drawing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gui/drawing/row_drawing.h"

namespace memwall::gui {

// Around the visible range, about a point per pixel where there are as many. Throws InputError.
std::shared_ptr<const std::vector<RateHigh>> visible_rates(const RowPlace& place);
// Mean flow in the visible range and its share of the bandwidth: "12.3 GB/s, 48 %"; "" where it cannot be read.
std::string link_note(const RowPlace& place);

}  // namespace memwall::gui
