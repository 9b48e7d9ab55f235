#include "study/step_bounds.h"

#include <algorithm>
#include <optional>

#include "traces/run/analysis/critical_path.h"
#include "traces/run/analysis/step_interval.h"

namespace memwall {
namespace {

constexpr double kPathDecides = 0.5;  // share of the path with a known error from which its own interval is good enough

// Every duration with an error times its factor, or divided by it. Nothing where none has one.
std::optional<SharedTrace> stretched(const Run& run, bool longer) {
  const DurationErrors errors(run.machine);
  SharedTrace trace = run.trace;
  std::vector<Op>& ops = trace.edit().ops;
  bool any = false;
  for (Op& op : ops) {
    const double error = errors.of(op);
    if (error <= 0) continue;
    const double factor = interval_factor(error);
    op.duration = from_seconds(to_seconds(op.duration) * (longer ? factor : 1 / factor));
    any = true;
  }
  return any ? std::optional(std::move(trace)) : std::nullopt;
}

}  // namespace

StepBounds step_bounds(const Run& run, const std::function<Run(SharedTrace)>& run_again) {
  if (!run.pager.empty()) return {};  // when what is moved follows from times: the ends of an interval bound nothing
  const Duration own = mean_step(run);
  const auto interval = step_interval(run, critical_path(run), own);
  if (interval && interval->known_share >= kPathDecides) return {};
  const auto shorter = stretched(run, false);
  if (!shorter) return {};
  const Duration low = mean_step(run_again(*shorter)), high = mean_step(run_again(*stretched(run, true)));
  // A shorter kernel may move others apart: the step as it is lies within all the same.
  return {std::min({low, own, high}), std::max({low, own, high})};
}

}  // namespace memwall
