// What the pointer says of a span. Internal to gui/drawing.
#pragma once

#include <string>

#include "gui/drawing/row_drawing.h"

namespace memwall::gui {

// Whole name, kind and phase, duration and begin, module, and why it began no earlier. Reads the texts.
std::string span_text(const OpenRun& run, const LoadedBlock& block, std::uint16_t offset, RunLaneKind kind);
// Of a pager's move.
std::string move_text(const OpenRun& run, const MoveRecord& move);
// The whole name of an op, else its kind.
std::string whole_name(const OpenRun& run, const LoadedBlock& block, std::uint16_t offset);

}  // namespace memwall::gui
