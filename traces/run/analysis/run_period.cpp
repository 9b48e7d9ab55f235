#include "traces/run/analysis/run_period.h"

#include <algorithm>

namespace memwall {

RunPeriod run_period(const Run& run) {
  RunPeriod period{kNever, Time{}, 1};
  const std::vector<StepWindow> windows = step_windows(run);
  for (const StepWindow& window : windows) {
    // What the host was through with before the GPU's backlog ended is empty, and stands where it was.
    if (window.begin < window.end) period.begin = std::min(period.begin, window.begin);
    period.end = std::max(period.end, window.end);
  }
  period.begin = std::min(period.begin, period.end);
  const std::size_t ranks = std::max<std::size_t>(1, run.trace->rank_table.size());
  period.steps = std::max(1.0, static_cast<double>(windows.size()) / static_cast<double>(ranks));
  return period;
}

}  // namespace memwall
