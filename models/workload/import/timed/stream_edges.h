// Which device work waits for work of another stream.
//
// Newer files say it (cuda_sync rows). Older ones hold cudaStreamWaitEvent calls without the event:
// then PyTorch's habits decide, by the innermost operator around the wait. An edge that the captured
// times contradict is moved back to the latest producer that they allow.
// Internal to the importers of timed captures.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/import/timed/joined_capture.h"

namespace memwall {

struct StreamEdge {
  std::uint32_t producer = 0, consumer = 0;  // device ops of the capture, in different streams
  bool inferred = false;                     // concluded, not stated by the file
};

struct StreamEdges {
  std::vector<StreamEdge> edges;    // by consumer's call, without doubles
  std::uint64_t moved = 0;          // moved back because contradicted
  std::uint64_t ignored_waits = 0;  // NCCL's own bookkeeping
};

StreamEdges find_stream_edges(const JoinedCapture& joined);

}  // namespace memwall
