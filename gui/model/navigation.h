// From one op to another: along its lane, along dependencies. Reads blocks where it has to, by binary
// search over those of the lane; every function may throw InputError. Ops that do not exist have no neighbours.
#pragma once

#include <optional>

#include "gui/model/open_run.h"
#include "gui/model/selection.h"

namespace memwall::gui {

enum class Direction : std::uint8_t { back, forward };

// The lane in which an op stands, by index into RunOutline::lanes; nothing if it has no such part.
std::optional<std::uint32_t> lane_of(const OpenRun& run, OpRef op);
// The neighbour in its lane. Reads blocks where it has to.
std::optional<OpRef> next_in_lane(const OpenRun& run, OpRef op, Direction direction);
// Back: what let it begin (the cause of its work, or of its call; of a call that waited, what let it return). Forward:
// the first that it let begin.
std::optional<OpRef> along_dependency(const OpenRun& run, OpRef op, Direction direction);
// What `part` of an op waited for, as its record says: along_dependency back.
std::optional<OpRef> cause_of(const OpDetail& detail, OpRef part);
// When it ran; 0 to 0 if it has no such part.
TimeRange time_of(const OpenRun& run, OpRef op);
}  // namespace memwall::gui
