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

// What the interval asks of the critical path besides errors.
double host_share(const std::vector<PathSegment>& path, const Trace& trace) {
  Duration host{}, all{};
  for (const PathSegment& segment : path) {
    all += segment.end - segment.begin;
    const bool own = segment.part == PathPart::gap || segment.part == PathPart::call;
    if (own && segment.op != kNoOp && trace.ops[segment.op].kind != OpKind::host_work)
      host += segment.end - segment.begin;
  }
  return all.count() > 0 ? to_seconds(host) / to_seconds(all) : 0;
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

// By runs with every duration short, and long; nothing where they are too near to each other.
std::optional<IntervalEnds> ends_of(const StepBounds& bounds, Duration step_time) {
  if (to_seconds(bounds.high - bounds.low) < kLeastWidth * to_seconds(bounds.high)) return std::nullopt;
  const double step = to_seconds(step_time);
  return IntervalEnds{std::max(0.0, std::log(step / to_seconds(bounds.low))),
                      std::max(0.0, std::log(to_seconds(bounds.high) / step))};
}

// Independent errors.
IntervalEnds together(IntervalEnds prices, ProgramDeviation program, IntervalEnds host) {
  return {std::hypot(prices.shorter, kDeviationsOf80Percent * program.shorter, host.shorter),
          std::hypot(prices.longer, kDeviationsOf80Percent * program.longer, host.longer)};
}

// False where the end is no time that can be told.
bool set_ends(StepInterval& interval, Duration step_time, IntervalEnds ends) {
  const double seconds = to_seconds(step_time);
  if (seconds * std::exp(ends.longer) > to_seconds(kLongestTime)) return false;
  interval.low = from_seconds(seconds * std::exp(-ends.shorter));
  interval.high = from_seconds(seconds * std::exp(ends.longer));
  return true;
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

std::optional<StepInterval> step_interval(const Run& run, const std::vector<PathSegment>& path, Duration step_time) {
  PathSurvey survey(run);
  scan(run, survey);
  return step_interval(run, path, step_time, survey);
}

// Host time is modelled where nothing at all was measured: a modelled op among measured ones has the capture's calls.
// A trace without device work (a memory snapshot) holds the host's time as it was recorded.
std::optional<StepInterval> step_interval(const Run& run, const std::vector<PathSegment>& path, Duration step_time,
                                          const PathSurvey& survey) {
  return step_interval(run, path, step_time,
                       survey.all_modelled() ? std::optional<JobKind>(survey.job()) : std::nullopt,
                       survey.busiest_thread());
}

std::optional<StepInterval> step_interval(const Run& run, const std::vector<PathSegment>& path, Duration step_time,
                                          std::optional<JobKind> job, double busiest_thread) {
  StepInterval interval;
  interval.job = job;
  const PathErrors errors = errors_of(run, path, interval.job.has_value());
  double variance = 0;
  for (std::size_t source = 0; source < errors.seconds.size(); ++source) {
    if (errors.seconds[source] <= 0) continue;
    interval.known_share += errors.seconds[source] / errors.total;
    variance += std::pow(errors.errors[source] / errors.total / kDeviationsOf90Percent, 2);
  }
  interval.carried = !interval.job && errors.carried;
  if (interval.job) interval.host = {host_share(path, run.trace), busiest_thread};
  interval.by_replays = run.step_bounds.high.count() > 0;
  if (interval.by_replays) {
    const auto ends = ends_of(run.step_bounds, step_time);
    if (!ends) return std::nullopt;
    interval.of_prices = *ends;
  } else {
    if (interval.known_share < kLeastKnownShare) return std::nullopt;
    interval.of_prices.shorter = interval.of_prices.longer = kDeviationsOf80Percent * std::sqrt(variance);
  }
  if (interval.job) interval.of_host = host_ends(interval.host, host_deviation());
  const ProgramDeviation program = added_deviation(interval.job, interval.carried);
  return set_ends(interval, step_time, together(interval.of_prices, program, interval.of_host))
             ? std::optional(interval)
             : std::nullopt;
}

IntervalEnds host_ends(const HostShare& share, ProgramDeviation host) {
  const auto factor = [](double deviation) { return std::exp(kDeviationsOf80Percent * deviation); };
  return {-std::log(share.shorter_by(factor(host.shorter))), std::log(share.longer_by(factor(host.longer)))};
}

StepInterval with_fitted_constants(StepInterval interval, Duration step_time) {
  interval.of_host = {};
  const IntervalEnds prices{kPricesBesides * interval.of_prices.shorter, kPricesBesides * interval.of_prices.longer};
  set_ends(interval, step_time, together(prices, fitted_program_deviation(interval.job.value()), interval.of_host));
  return interval;
}

}  // namespace memwall
