// Where the time of a range went: its spans added up by op, module, phase or kind.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gui/model/open_run.h"
#include "gui/model/time_range.h"

namespace memwall::gui {

enum class StatisticsKey : std::uint8_t { op, module, phase, kind };
inline constexpr int kStatisticsKeys = 4;
std::string_view to_string(StatisticsKey key);

struct StatisticsRow {
  std::string name;
  std::uint64_t count = 0;  // spans that touch the range
  Duration work{}, call{};  // device time and host time within the range: spans are cut at its ends
  Duration longest{};       // of the device spans, uncut; of the calls where there is no work
};

struct SelectionStatistics {
  TimeRange range;
  std::vector<StatisticsRow> rows;  // by work, then by call, longest first, then by name
  StatisticsRow total;
  std::vector<Duration> busy;  // per lane of the outline: how long at least one span was there
};

// Spans of the lanes `shown` (by lane of the outline; empty: all). Reads blocks that are not in memory without keeping
// them. Throws InputError, LoadCancelled.
SelectionStatistics statistics(const OpenRun& run, TimeRange range, StatisticsKey key, const std::vector<bool>& shown,
                               const LoadProgress& progress);

}  // namespace memwall::gui
