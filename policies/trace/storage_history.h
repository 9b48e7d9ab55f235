// What happens to each storage over a trace, and how the trace divides into runs of phases.
#pragma once

#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

// One op's touch of a storage. An op that reads and writes it appears once.
struct Touch {
  OpId op = kNoOp;
  bool reads = false, writes = false;
};

struct StorageHistory {
  OpId alloc = kNoOp, free = kNoOp;  // kNoOp: preexisting, or outlives the trace
  std::vector<Touch> touches;        // in host order
};

// Index: storage id.
std::vector<StorageHistory> storage_histories(const Trace& trace);

// Forward, backward (recompute included) and optimizer follow each other; an op of unknown phase
// belongs to the run it stands in.
enum class RunKind : std::uint8_t { forward, backward, optimizer };

struct PhaseRun {
  RunKind kind = RunKind::forward;
  OpId first = 0, last = 0;  // last: inclusive
};

struct PhaseRuns {
  std::vector<PhaseRun> runs;
  std::vector<std::uint32_t> run_of;  // index: op id
};
PhaseRuns phase_runs(const Trace& trace);

}  // namespace memwall
