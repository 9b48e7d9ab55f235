#include "models/workload/import/timed/placed_events.h"

namespace memwall {
namespace {

// What was placed as captured is over when it is over; only a stream's last such op can be recorded.
bool recordable(const JoinedCapture& j, std::uint32_t producer) {
  const JoinedDeviceOp& op = j.device_ops[producer];
  if (op.placement != Placement::head) return true;
  const std::vector<std::uint32_t>& order = j.streams[op.stream].order;
  return op.position + 1 == order.size() || j.device_ops[order[op.position + 1]].placement != Placement::head;
}

}  // namespace

PlacedEvents place_events(const JoinedCapture& joined, const StreamEdges& edges, const TimedImportOptions& options,
                          TraceBuilder& builder, ImportSummary& summary) {
  PlacedEvents events;
  events.behind.resize(joined.device_ops.size(), kNoIndex);
  events.of_call.resize(joined.calls.size(), kNoIndex);
  const auto event_behind = [&](std::uint32_t producer) {
    if (events.behind[producer] == kNoIndex) events.behind[producer] = builder.add_event();
    return events.behind[producer];
  };
  std::uint32_t number = 0;
  for (const StreamEdge& edge : edges.edges) {
    const bool dropped = number++ == options.drop_edge || (edge.inferred && options.drop_inferred_edges);
    if (dropped || !recordable(joined, edge.producer)) continue;
    ++(edge.inferred ? summary.inferred_edges : summary.given_edges);
    events.before[edge.consumer].push_back({event_behind(edge.producer), edge.inferred});
  }
  for (std::uint32_t call = 0; call < joined.calls.size(); ++call) {
    if (joined.calls[call].wait_for != WaitFor::event) continue;
    const std::uint16_t stream = joined.calls[call].stream;
    const auto last = joined.last_before(stream, joined.calls[call].awaited_record);
    const std::uint32_t producer = last ? joined.streams[stream].order[*last] : kNoIndex;
    if (producer != kNoIndex && recordable(joined, producer)) events.of_call[call] = event_behind(producer);
  }
  return events;
}

}  // namespace memwall
