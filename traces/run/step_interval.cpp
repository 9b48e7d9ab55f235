#include "traces/run/step_interval.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace memwall {
namespace {

constexpr double kDeviationsOf90Percent = 1.645, kDeviationsOf80Percent = 1.2816;
constexpr std::size_t kOperatorClasses = 10;

// The path's seconds by source of error: the operator classes, collectives, the host.
struct PathShares {
  std::array<double, kOperatorClasses + 2> seconds{};
  double total = 0;
};

// Host time is modelled where nothing at all was measured: a modelled op among measured ones has the capture's calls.
bool all_modelled(const Trace& trace) {
  return std::none_of(trace.ops.begin(), trace.ops.end(),
                      [](const Op& op) { return runs_on_device(op.kind) && op.origin != Origin::modelled; });
}

PathShares shares_of(const Trace& trace, const std::vector<PathSegment>& path) {
  const bool host_modelled = all_modelled(trace);
  PathShares shares;
  for (const PathSegment& segment : path) {
    const double seconds = to_seconds(segment.end - segment.begin);
    shares.total += seconds;
    if (segment.op == kNoOp) continue;
    const Op& op = trace.ops[segment.op];
    const bool work = segment.part == PathPart::work && op.origin == Origin::modelled;
    if (work && (op.kind == OpKind::kernel || op.kind == OpKind::memset))
      shares.seconds[static_cast<std::size_t>(op.operator_class)] += seconds;
    else if (work && op.kind == OpKind::collective)
      shares.seconds[kOperatorClasses] += seconds;
    else if (host_modelled && segment.part == PathPart::gap)
      shares.seconds[kOperatorClasses + 1] += seconds;
  }
  return shares;
}

double residual_of(const Machine& machine, std::size_t source) {
  if (source == kOperatorClasses) return machine.price_error(OpKind::collective, OperatorClass::other);
  if (source > kOperatorClasses) return machine.price_error(OpKind::host_work, OperatorClass::other);
  return machine.price_error(OpKind::kernel, static_cast<OperatorClass>(source));
}

}  // namespace

std::optional<StepInterval> step_interval(const Run& run, const std::vector<PathSegment>& path, Duration step_time) {
  const PathShares shares = shares_of(run.trace, path);
  double variance = 0, known = 0;
  for (std::size_t source = 0; source < shares.seconds.size(); ++source) {
    const double residual = residual_of(run.machine, source);
    if (residual <= 0 || shares.seconds[source] <= 0) continue;
    const double share = shares.seconds[source] / shares.total;
    known += share;
    variance += std::pow(share * residual / kDeviationsOf90Percent, 2);
  }
  if (known <= 0) return std::nullopt;
  const double factor = std::exp(kDeviationsOf80Percent * std::sqrt(variance));
  const double seconds = to_seconds(step_time);
  return StepInterval{from_seconds(seconds / factor), from_seconds(seconds * factor), known};
}

}  // namespace memwall
