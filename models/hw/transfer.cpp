#include "models/hw/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/hw/kernel_cost.h"

namespace memwall {
namespace {

bool is_matrix_class(OperatorClass c) {
  return c == OperatorClass::gemm || c == OperatorClass::convolution || c == OperatorClass::attention;
}

double hbm_rate(const Machine& m, OperatorClass c) {
  return m.links[m.hbm_link].bandwidth * efficiency_of(m.gpu, c).memory;
}

double compute_rate(const Machine& m, const Op& op) {
  return peak_flops(m.gpu, op.data_type, op.operator_class) * efficiency_of(m.gpu, op.operator_class).compute;
}

double kernel_ratio(const Op& op, const Machine& here, const Machine& there) {
  if (op.bytes > 0 || op.flops > 0) {
    // `waves` counts blocks on the multiprocessors of `here`.
    Op moved = op;
    moved.waves *= static_cast<float>(here.gpu.multiprocessors) / static_cast<float>(there.gpu.multiprocessors);
    return to_seconds(kernel_duration(there, moved)) / to_seconds(kernel_duration(here, op));
  }
  if (is_matrix_class(op.operator_class) && compute_rate(there, op) > 0)
    return compute_rate(here, op) / compute_rate(there, op);
  return hbm_rate(here, op.operator_class) / hbm_rate(there, op.operator_class);
}

double copy_seconds(const Trace& trace, const Op& op, const Machine& m) {
  const int from = m.tier(trace.places[op.from]), to = m.tier(trace.places[op.to]);
  const Route* route = from < 0 || to < 0 ? nullptr : m.route(from, to, op.pageable);
  if (!route) return 0;
  const auto bytes = static_cast<double>(std::max<Bytes>(op.bytes, 1));
  return to_seconds(route->latency) + bytes / (route->bandwidth * route->efficiency.at(bytes));
}

double copy_ratio(const Trace& trace, const Op& op, const Machine& here, const Machine& there) {
  const double before = copy_seconds(trace, op, here), after = copy_seconds(trace, op, there);
  return before > 0 && after > 0 ? after / before : 1;
}

double collective_ratio(const Op& op, std::uint32_t ranks, const Machine& here, const Machine& there) {
  const Fabric* a = here.fabric(std::max(ranks, 2U));
  const Fabric* b = there.fabric(std::max(ranks, 2U));
  if (!a || !b) return 1;
  const auto seconds = [&](const Fabric& f) {
    const auto bytes = static_cast<double>(std::max<Bytes>(op.bytes, 1));
    return to_seconds(f.base_latency) + bytes / (f.bus_bandwidth * f.efficiency.at(bytes));
  };
  return seconds(*b) / seconds(*a);
}

double ratio(const Trace& trace, const Op& op, const Machine& here, const Machine& there) {
  switch (op.kind) {
    case OpKind::kernel:
    case OpKind::memset: return kernel_ratio(op, here, there);
    case OpKind::copy:
    case OpKind::storage_io: return copy_ratio(trace, op, here, there);
    case OpKind::collective: return collective_ratio(op, trace.ranks, here, there);
    default: return 1;
  }
}

}  // namespace

Trace transferred(Trace trace, const Machine& here, const Machine& there) {
  std::uint64_t moved = 0;
  for (Op& op : trace.ops) {
    if (!runs_on_device(op.kind) || op.duration == Duration{}) continue;
    op.duration = Duration(std::llround(static_cast<double>(op.duration.count()) * ratio(trace, op, here, there)));
    if (op.waves > 0)
      op.waves *= static_cast<float>(here.gpu.multiprocessors) / static_cast<float>(there.gpu.multiprocessors);
    if (op.origin == Origin::measured) op.origin = Origin::transferred;
    ++moved;
  }
  const Duration latency = there.host.launch_latency - here.host.launch_latency;
  const Duration gap = there.host.stream_gap - here.host.stream_gap;
  for (Duration& l : trace.constants.launch_latency) l += latency;
  for (auto& row : trace.constants.stream_gap)
    for (Duration& g : row) g = std::max(Duration{}, g + gap);
  trace.notes.push_back(fmt::format(
      "Measured on {}, run on {}: {} durations scaled by predicted ratios; host times kept.", here.name, there.name,
      moved));
  trace.machine = there.name;
  return trace;
}

}  // namespace memwall
