#include "traces/run/analysis/step_interval.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/machine/attention_error.h"
#include "traces/run/analysis/run_scan.h"

namespace memwall {
namespace {

constexpr double kDeviationsOf90Percent = 1.645, kDeviationsOf80Percent = 1.2816;
// Of a step: a narrower interval by replays says that its time hangs on what has no known error, not that it is
// certain.
constexpr double kLeastWidth = 1e-3;
constexpr std::size_t kOperatorClasses = 10;

constexpr std::size_t kCollectives = kOperatorClasses, kHost = kCollectives + 1, kCopies = kHost + 1;

// Of the path, by source of error: seconds that have one, and these times their error (90 %).
struct PathErrors {
  std::array<double, kCopies + 1> seconds{}, errors{};
  double total = 0;
  bool carried = false;  // some of them from another machine
};

std::size_t source_of(const Op& op) {
  if (op.kind == OpKind::collective) return kCollectives;
  if (op.kind == OpKind::copy || op.kind == OpKind::storage_io) return kCopies;
  return static_cast<std::size_t>(op.operator_class);
}

double residual_of(const Machine& machine, std::size_t source) {
  if (source == kCollectives) return machine.price_error(OpKind::collective, OperatorClass::other);
  if (source == kHost) return machine.price_error(OpKind::host_work, OperatorClass::other);
  if (source == kCopies) return machine.price_error(OpKind::copy, OperatorClass::other);
  return machine.price_error(OpKind::kernel, static_cast<OperatorClass>(source));
}

using Residuals = std::array<double, kCopies + 1>;

Residuals residuals_of(const Machine& machine) {
  Residuals residuals{};
  for (std::size_t source = 0; source < residuals.size(); ++source) residuals[source] = residual_of(machine, source);
  return residuals;
}

// Of the work of one op: what it was carried over with, or that of its class's prices, of attention of its kernel's.
double error_of(const Op& op, const Trace& trace, const Machine& machine, const Residuals& residuals) {
  if (op.origin == Origin::transferred) return op.error_permille / 1000.0;
  if (op.origin != Origin::modelled) return 0;
  const std::size_t source = source_of(op);
  if (source == static_cast<std::size_t>(OperatorClass::attention) && op.shape < trace.shapes.size())
    if (const AttentionKernel kernel = attention_kernel(trace.shapes[op.shape]);
        kernel != AttentionKernel::flash_attention_2)
      return std::max(residuals[source], attention_error(machine.gpu, kernel));
  return residuals[source];
}

PathErrors errors_of(const Run& run, const std::vector<PathSegment>& path, bool host_modelled) {
  const Trace& trace = run.trace;
  const Residuals residuals = residuals_of(run.machine);
  PathErrors errors;
  for (const PathSegment& segment : path) {
    const double seconds = to_seconds(segment.end - segment.begin);
    errors.total += seconds;
    const bool host = host_modelled && segment.part == PathPart::gap;
    if (segment.op == kNoOp || (segment.part != PathPart::work && !host)) continue;
    const Op& op = trace.ops[segment.op];
    const bool work = segment.part == PathPart::work && runs_on_device(op.kind);
    if (!work && !host) continue;
    const std::size_t source = work ? source_of(op) : kHost;
    const double error = work ? error_of(op, trace, run.machine, residuals) : residuals[kHost];
    if (error <= 0) continue;
    errors.carried = errors.carried || (work && op.origin == Origin::transferred);
    errors.seconds[source] += seconds;
    errors.errors[source] += seconds * error;
  }
  return errors;
}

// An end of the interval by replays, with what the program may do otherwise as one more, independent error.
Duration widened(Duration step_time, Duration end, double deviation) {
  const double away = std::log(to_seconds(end) / to_seconds(step_time));
  const double both = std::hypot(away, kDeviationsOf80Percent * deviation);
  return from_seconds(to_seconds(step_time) * std::exp(end < step_time ? -both : both));
}

// What is added to the prices' errors.
ProgramDeviation added_deviation(std::optional<JobKind> job, bool carried) {
  if (job) return program_deviation(*job);
  return carried ? ProgramDeviation{carried_deviation(), carried_deviation()} : ProgramDeviation{};
}

}  // namespace

DurationErrors::DurationErrors(const Machine& machine) {
  for (const double residual : residuals_of(machine)) residuals_.push_back(residual);
}

double DurationErrors::of(const Op& op) const {
  if (!runs_on_device(op.kind)) return 0;
  if (op.origin == Origin::transferred) return op.error_permille / 1000.0;
  return op.origin == Origin::modelled ? residuals_[source_of(op)] : 0;
}

double interval_factor(double error) { return std::exp(kDeviationsOf80Percent * error / kDeviationsOf90Percent); }

// Host time is modelled where nothing at all was measured: a modelled op among measured ones has the capture's calls.
// A trace without device work (a memory snapshot) holds the host's time as it was recorded.
std::optional<StepInterval> step_interval(const Run& run, const std::vector<PathSegment>& path, Duration step_time) {
  PathSurvey survey(run);
  scan(run, survey);
  return step_interval(run, path, step_time,
                       survey.all_modelled() ? std::optional<JobKind>(survey.job()) : std::nullopt);
}

std::optional<StepInterval> step_interval(const Run& run, const std::vector<PathSegment>& path, Duration step_time,
                                          std::optional<JobKind> job) {
  const PathErrors errors = errors_of(run, path, job.has_value());
  double variance = 0, known = 0;
  for (std::size_t source = 0; source < errors.seconds.size(); ++source) {
    if (errors.seconds[source] <= 0) continue;
    known += errors.seconds[source] / errors.total;
    variance += std::pow(errors.errors[source] / errors.total / kDeviationsOf90Percent, 2);
  }
  const bool carried = !job && errors.carried;
  const ProgramDeviation program = added_deviation(job, carried);
  if (const StepBounds& bounds = run.step_bounds; bounds.high.count() > 0) {
    if (to_seconds(bounds.high - bounds.low) < kLeastWidth * to_seconds(bounds.high)) return std::nullopt;
    if (!job && !carried) return StepInterval{bounds.low, bounds.high, known, true, {}, false};
    return StepInterval{widened(step_time, bounds.low, program.shorter),
                        widened(step_time, bounds.high, program.longer),
                        known,
                        true,
                        job,
                        carried};
  }
  if (known < kLeastKnownShare) return std::nullopt;
  const auto factor = [&](double besides) {
    return std::exp(kDeviationsOf80Percent * std::sqrt(variance + besides * besides));
  };
  const double seconds = to_seconds(step_time);
  if (seconds * factor(program.longer) > to_seconds(kLongestTime)) return std::nullopt;  // no time that can be told
  return StepInterval{from_seconds(seconds / factor(program.shorter)),
                      from_seconds(seconds * factor(program.longer)),
                      known,
                      false,
                      job,
                      carried};
}

}  // namespace memwall
