#include "gui/model/selection_statistics.h"

namespace memwall::gui {
std::string_view to_string(StatisticsKey) { return ""; }
SelectionStatistics statistics(const OpenRun&, TimeRange, StatisticsKey, const std::vector<bool>&,
                               const LoadProgress&) {
  return {};
}
}  // namespace memwall::gui
