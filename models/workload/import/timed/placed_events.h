// Where events are recorded and waited for, so that each edge between streams binds the right work.
// Internal to the importers of timed captures.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "models/workload/import/timed/joined_capture.h"
#include "models/workload/import/timed/stream_edges.h"
#include "models/workload/import/timed/timed_import.h"
#include "sim/trace/trace_builder.h"

namespace memwall {

// An event is recorded right behind its producer and waited for right before its consumer.
struct PlacedEvents {
  std::vector<std::uint32_t> behind;   // per device op: event recorded behind it, or kNoIndex
  std::vector<std::uint32_t> of_call;  // per call: event it synchronizes with, or kNoIndex
  // By device op, of the few that wait: events it waits for; inferred?
  std::unordered_map<std::uint32_t, std::vector<std::pair<std::uint32_t, bool>>> before;
};

// Adds events to the builder; counts edges in the summary; leaves out what the options drop.
PlacedEvents place_events(const JoinedCapture& joined, const StreamEdges& edges, const TimedImportOptions& options,
                          TraceBuilder& builder, ImportSummary& summary);

}  // namespace memwall
