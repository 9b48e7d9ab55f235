#include "models/hw/transferred_host.h"

#include <fmt/format.h>

#include <cmath>

namespace memwall {
namespace {

double ratio(Duration there, Duration here) {
  return here.count() > 0 && there.count() > 0 ? to_seconds(there) / to_seconds(here) : 1;
}

struct HostFactors {
  HostFactors(const HostCosts& from, const HostCosts& to)
      : launch(ratio(to.launch, from.launch)),
        copy(ratio(to.copy_call, from.copy_call)),
        event(ratio(to.event_call, from.event_call)),
        allocator(ratio(to.allocator_call, from.allocator_call)),
        latency(ratio(to.launch_latency, from.launch_latency)),
        stream_gap(ratio(to.stream_gap, from.stream_gap)) {}

  double call(OpKind kind) const {
    switch (kind) {
      case OpKind::kernel:
      case OpKind::memset:
      case OpKind::collective:
      case OpKind::graph_launch:
        return launch;
      case OpKind::copy:
      case OpKind::storage_io:
        return copy;
      case OpKind::event_record:
      case OpKind::event_wait:
        return event;
      case OpKind::alloc:
      case OpKind::free:
        return allocator;
      default:
        return 1;
    }
  }

  double launch, copy, event, allocator, latency, stream_gap;
};

void transfer_constants(ReplayConstants& constants, const HostFactors& f) {
  for (Duration& latency : constants.launch_latency) latency = scaled_time(latency, f.latency);
  for (auto& after : constants.stream_gap)
    for (Duration& gap : after) gap = scaled_time(gap, f.stream_gap);
}

}  // namespace

void transfer_host_time(Trace& trace, const HostCosts& from, const HostCosts& to) {
  const HostFactors f(from, to);
  for (Op& op : trace.ops) op.host_cost = scaled_time(op.host_cost, f.call(op.kind));
  transfer_constants(trace.constants, f);
  for (Rank& rank : trace.rank_table) transfer_constants(rank.constants, f);
  trace.notes.push_back(fmt::format(
      "Calls of the host are transferred by the machine files: launch x{:.3g}, copy x{:.3g}, event x{:.3g}, allocator "
      "x{:.3g}, launch latency x{:.3g}, gaps between kernels x{:.3g}. The framework's own time between calls stays as "
      "it was captured (--scale host=0.8 for a faster processor).",
      f.launch, f.copy, f.event, f.allocator, f.latency, f.stream_gap));
}

}  // namespace memwall
