#include "traces/run/analysis/interval_text.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/number_text.h"

namespace memwall {
namespace {

// Is more than half of the variance of longer times the host's?
bool is_mostly_host(const StepInterval& interval, Duration step_time) {
  const double all = std::log(to_seconds(interval.high) / to_seconds(step_time));
  return 2 * interval.of_host.longer * interval.of_host.longer > all * all;
}

// That published jobs widen the interval: of its kind, of a step that was measured nowhere; carried from GPU to GPU.
std::string program_text(const StepInterval& interval, Duration step_time) {
  if (interval.carried) return " and how far published jobs on two GPUs differ besides";
  if (!interval.job) return "";
  return fmt::format(" and how far published jobs of its kind ({}) and their hosts differ besides{}",
                     to_string(*interval.job),
                     is_mostly_host(interval, step_time) ? "; the upper end is mostly a slower host" : "");
}

}  // namespace

std::string interval_text(const StepInterval& interval, Duration step_time) {
  if (!interval.by_replays)
    return fmt::format("of the step time, from the errors of modelled times ({1} of the critical path){0}",
                       program_text(interval, step_time), percent_text(interval.known_share));
  return fmt::format(
      "of the step time: run with every carried or modelled duration of the device short, and long{}",
      interval.job ? "," + program_text(interval, step_time) : std::string("; the host's own time counts as exact"));
}

}  // namespace memwall
