#include "validate/report/measured_links.h"

#include <algorithm>
#include <cmath>

#include "sim/machine/hbm_traffic.h"

namespace memwall {
namespace {

struct Flow {
  Time begin{}, end{};
  Bytes bytes = 0;
};

struct RateChange {
  Time time{};
  double rate = 0;  // bytes per second more, or less
  int flows = 0;
};

std::vector<std::uint16_t> links_of(const Op& op, const Trace& trace, const Machine& machine) {
  switch (op.kind) {
    case OpKind::kernel:
    case OpKind::memset:
      return {machine.hbm_link};
    case OpKind::host_work:
      return {machine.dram_link};
    case OpKind::copy:
    case OpKind::storage_io: {
      const int from = machine.tier(trace.places[op.from]), to = machine.tier(trace.places[op.to]);
      const Route* route = from < 0 || to < 0 ? nullptr : machine.route(from, to, op.pageable);
      return route == nullptr ? std::vector<std::uint16_t>{} : route->links;
    }
    default:
      return {};
  }
}

void sum_up(const std::vector<Flow>& flows, double multiplicity, int link, LinkResult& result, Observer* observer) {
  std::vector<RateChange> changes;
  for (const Flow& flow : flows) {
    const double carried = static_cast<double>(flow.bytes) * multiplicity;
    result.bytes += static_cast<Bytes>(std::llround(carried));
    if (flow.end <= flow.begin) continue;
    const double rate = carried / to_seconds(flow.end - flow.begin);
    changes.push_back({flow.begin, rate, 1});
    changes.push_back({flow.end, -rate, -1});
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const RateChange& a, const RateChange& b) { return a.time < b.time; });
  double rate = 0;
  int running = 0;
  Time since{};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const RateChange& change = changes[i];
    if (running > 0) result.busy += change.time - since;
    since = change.time;
    running += change.flows;
    rate = running == 0 ? 0 : rate + change.rate;  // no rounding error outlives a pause
    if (observer != nullptr && (i + 1 == changes.size() || changes[i + 1].time != change.time))
      observer->on_link_rate(change.time, link, rate);
  }
}

}  // namespace

std::vector<LinkResult> measured_links(const Trace& trace, const Machine& machine, const std::vector<OpRecord>& records,
                                       Observer* observer) {
  std::vector<LinkResult> results(machine.links.size());
  if (machine.links.empty()) return results;
  std::vector<std::vector<Flow>> flows(machine.links.size());
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    const bool of_kernel = op.kind == OpKind::kernel || op.kind == OpKind::memset;
    const Bytes bytes = of_kernel ? static_cast<Bytes>(hbm_bytes(machine.gpu, op)) : op.bytes;
    if (bytes <= 0) continue;
    const bool device = runs_on_device(op.kind);
    const OpRecord& r = records[id];
    // Host work that waits for the device first: when it began to work is not known, but how long it takes is.
    const Time begin = device ? r.start : std::max(r.host_start, r.host_end - op.duration);
    if (begin == kNever) continue;
    for (const std::uint16_t link : links_of(op, trace, machine))
      flows[link].push_back({begin, device ? r.end : r.host_end, bytes});
  }
  for (std::size_t l = 0; l < flows.size(); ++l) {
    const double multiplicity = std::max(1u, std::min(trace.ranks, machine.links[l].sharers));
    sum_up(flows[l], multiplicity, static_cast<int>(l), results[l], observer);
  }
  return results;
}

}  // namespace memwall
