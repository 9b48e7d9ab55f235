// How far a modelled or transferred step time may be from the truth: from the residuals of the curves that priced its
// ops, or the errors with which measured ones were carried over (Op::error_permille).
//
// The step is as long as its critical path. An error common to all prices of a class moves the step by the path's
// time in that class, times the error, as long as the path stays where it is (first order). Errors of classes are
// independent, so that
//
//   (deviation / step)^2 = sum over classes of (sum over its ops of share of the path * error / 1.645)^2
//
// 1.645: 90 % of a normal distribution lie within that many deviations. The interval is that of a lognormal error,
// exp(+- 1.2816 deviation) for 80 %. What the path waits for that was measured, or whose error nobody knows (modelled
// copies, calls), counts as exact. Copies are a class, and so are collectives
// and, where all is modelled, gaps between calls.
//
// To a step that was measured nowhere, and to one that was carried from another machine, what its program may do
// otherwise is added (program_error.h), as one more class, on either side for itself; and to the first, as another,
// what its host may: not in proportion to the path, but by what a slower host makes of the step (host_share.h). That is
// of programs; the class of modelled gaps between calls, which is there besides, is of the costs of operators.
//
// Where little of the path has an error, as where the host decides, that says nothing: then the step is run twice more
// with every duration that has an error short and long (study/step_bounds.h), and the interval is what comes out.
// Without these runs there is none.
#pragma once

#include <optional>
#include <vector>

#include "traces/run/analysis/critical_path.h"
#include "traces/run/analysis/host_share.h"
#include "traces/run/analysis/program_error.h"
#include "traces/run/run.h"

namespace memwall {

// How far an interval reaches below and above, in ln of the step time.
struct IntervalEnds {
  double shorter = 0, longer = 0;
};

struct StepInterval {
  Duration low{}, high{};  // around the step time: 80 % by the model's own errors
  double known_share = 0;  // of the critical path, that is modelled or transferred with a known error
  bool by_replays = false;  // from Run::step_bounds
  std::optional<JobKind> job;  // of a step that was measured nowhere: whose program's error is in it
  bool carried = false;        // of a step with durations from another machine: carried_deviation() is in it
  IntervalEnds of_prices{};    // what it would reach by the errors of prices alone
  HostShare host{};            // with `job`: how much of the step is its host's
  IntervalEnds of_host{};      // with `job`: what the interval would reach by host_deviation() alone
};
inline constexpr double kIntervalShare = 0.8;
// Below this share of the path with a known error the path alone gives no interval.
inline constexpr double kLeastKnownShare = 0.05;

// Errors of durations on one machine.
class DurationErrors {
 public:
  explicit DurationErrors(const Machine& machine);
  // Of an op's work on the device: 90 % of truths lie within its duration x (1 +- this); 0 = not known, or measured.
  double of(const Op& op) const;

 private:
  std::vector<double> residuals_;  // by source of error
};
// By how much a duration with that error is longer, and shorter, at the ends of the interval: at least 1.
double interval_factor(double error);

// Nothing where less than kLeastKnownShare of the path has a known residual, and the run has no bounds by replays.
std::optional<StepInterval> step_interval(const Run& run, const std::vector<PathSegment>& path, Duration step_time);

// How far a host of another speed moves a step, by that deviation of its time.
IntervalEnds host_ends(const HostShare& share, ProgramDeviation host);

// That of a step to whose program constants were fitted, by measured steps of it on that machine. What prices have in
// common, and what the host takes, is in the constants; kPricesBesides of the rest, and fitted_program_deviation(), are
// not. REQUIRES: interval.job.
StepInterval with_fitted_constants(StepInterval interval, Duration step_time);

}  // namespace memwall
