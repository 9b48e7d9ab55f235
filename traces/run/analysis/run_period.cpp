#include "traces/run/analysis/run_period.h"

#include <algorithm>

namespace memwall {

RunPeriod run_period(const Run& run) {
  RunPeriod period{kNever, Time{}, 1};
  const std::vector<StepWindow> windows = step_windows(run);
  for (const StepWindow& window : windows) {
    period.begin = std::min(period.begin, window.begin);
    period.end = std::max(period.end, window.end);
  }
  const std::size_t ranks = std::max<std::size_t>(1, run.trace->rank_table.size());
  period.steps = std::max(1.0, static_cast<double>(windows.size()) / static_cast<double>(ranks));
  return period;
}

}  // namespace memwall
