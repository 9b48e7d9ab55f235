#include "gui/model/navigation.h"

namespace memwall::gui {
std::optional<std::uint32_t> lane_of(const OpenRun&, OpRef) { return std::nullopt; }
std::optional<OpRef> next_in_lane(const OpenRun&, OpRef, Direction) { return std::nullopt; }
std::optional<OpRef> along_dependency(const OpenRun&, OpRef, Direction) { return std::nullopt; }
TimeRange time_of(const OpenRun&, OpRef) { return {}; }
std::optional<OpRef> first_in_lane(const OpenRun&, std::uint8_t, std::uint32_t, Time) { return std::nullopt; }
}  // namespace memwall::gui
