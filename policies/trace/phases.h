// How a trace divides by phases: into runs, and into the passes that have a backward.
#pragma once

#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

// Forward, backward (recompute included) and optimizer follow each other; an op of unknown phase
// belongs to the run it stands in.
enum class RunKind : std::uint8_t { forward, backward, optimizer };

struct PhaseRun {
  RunKind kind = RunKind::forward;
  OpId first = 0, last = 0;  // last: inclusive
};

class PhaseRuns {
 public:
  explicit PhaseRuns(const Trace& trace);

  // The index of the op's run; O(log runs).
  std::uint32_t of(OpId op) const;
  const PhaseRun& run(OpId op) const { return runs_[of(op)]; }
  RunKind kind(OpId op) const { return run(op).kind; }

 private:
  std::vector<PhaseRun> runs_;
};

// One forward pass and what follows it until the next: backward and, mostly, the optimizer. With
// gradient accumulation a step has several.
struct Pass {
  OpId begin = 0;     // first op of the phase forward
  OpId backward = 0;  // first op of the phase backward
  OpId end = 0;       // one past the last op
};

// The passes that have a backward, in host order. What a step computes behind backward and before its optimizer's ops
// belongs to the pass, though captures call it forward (a GradScaler's inverse scale, norms of gradients).
std::vector<Pass> passes(const Trace& trace);
// Forward passes of one step, which share its samples evenly; 1 where that cannot be told.
std::int64_t passes_per_step(const Trace& trace);

}  // namespace memwall
