// What a capture says about its machine: constants of launches and streams, the own cost of each
// call without its waiting, and whether the known rules explain the captured starts.
// Internal to the importers of timed captures.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/import/timed/joined_capture.h"
#include "models/workload/import/timed/stream_edges.h"
#include "models/workload/import/timed/timed_import.h"

namespace memwall {

struct CallCost {
  Duration own{};           // waiting not included
  Duration return_delay{};  // of calls that wait
};

struct CaptureCosts {
  ReplayConstants constants;
  std::vector<CallCost> calls;  // as TimedCapture::calls
};

// Also fills the summary's samples, blocking calls, queue-limited launches and unexplained waits.
CaptureCosts find_costs(const JoinedCapture& joined, const StreamEdges& edges, ImportSummary& summary);

}  // namespace memwall
