// From one op to another: along its lane, along dependencies.
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
// Back: what let it begin (the cause of its work, or of its call). Forward: the first that it let begin.
std::optional<OpRef> along_dependency(const OpenRun& run, OpRef op, Direction direction);
// When it ran.
TimeRange time_of(const OpenRun& run, OpRef op);
// The first op at or after `time` in a lane.
std::optional<OpRef> first_in_lane(const OpenRun& run, std::uint8_t number, std::uint32_t lane, Time time);

}  // namespace memwall::gui
