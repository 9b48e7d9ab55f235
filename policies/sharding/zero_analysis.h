// What there is to split in a trace: parameters, their gradients and optimizer states; when each
// gradient is made; which ops update. Decides nothing yet, but refuses what cannot be split.
#pragma once

#include <string>
#include <vector>

#include "policies/sharding/zero_replaced.h"
#include "policies/trace/dataflow.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace.h"

namespace memwall {

// A gradient of a parameter as one backward pass makes it.
struct GradientMade {
  StorageId gradient = kNoStorage;
  OpId first_write = kNoOp;
  OpId ready = kNoOp;        // the pass's last op that touches it
  bool accumulates = false;  // adds to what an earlier pass left, or to zeros
};

struct BackwardPass {
  Pass pass;
  OpId last_backward = kNoOp;      // last op of the phase backward
  bool before_update = false;      // an optimizer step follows before the next forward (or the end)
  std::vector<GradientMade> made;  // in the order in which they are ready
};

struct ZeroAnalysis {
  std::vector<StorageId> parameters;  // kind parameter, without `replicated`; ascending, as all below
  // Of these, what the optimizer is given: what an op of its steps writes. All where the step shows no such op.
  std::vector<StorageId> trained;
  // Every rank keeps these: what is written outside of the optimizer (running statistics), and in a step with
  // collectives of its own what the optimizer does not write (tables that are this rank's part of the model).
  std::vector<StorageId> replicated;
  std::vector<StorageId> gradients;     // kind gradient, of parameters: they outlive their backward pass
  std::vector<StorageId> states;        // kind optimizer_state, without scalars and `table_states`
  std::vector<StorageId> table_states;  // in a step with collectives of its own: that no optimizer step uses
  std::vector<StorageId> temporaries;   // of the optimizer only, as large as one of the above
  std::vector<OpId> updates;            // ops outside of forward and backward that touch any of these
  ReplacedReduction replaced;           // the data parallelism that the step has already
  std::vector<OpId> own_collectives;    // that move data alone (all-to-alls of features): they stay
  std::vector<BackwardPass> passes;

  // Is there one after op `before` and before op `after`?
  bool updates_between(OpId before, OpId after) const;
};

// Throws UsageError naming `policy` and what is missing, or the captured collective that has no place in it.
ZeroAnalysis analyze_for_zero(const Trace& trace, const Dataflow& flow, int stage, const std::string& policy = "zero");

// Does `policy` take the trace: as stage 3 asks, which needs most; where that is refused and stage 2 is not, in
// stage 2.
PolicyAnswer answer_for_zero(const Trace& trace, const std::string& policy);

}  // namespace memwall
