// Memory that a library takes for one call and gives back in it. A profile with memory events shows it (cuDNN's may be
// gigabytes, and hold the peak); a step that was captured on fake tensors or generated does not.
#pragma once

#include <vector>

#include "models/workload/graft/line_pairs.h"
#include "models/workload/operator_calls.h"
#include "sim/trace/trace.h"

namespace memwall {

struct CallWorkspace {
  StorageId storage = kNoStorage;  // of the measured program
  OpId alloc = kNoOp, free = kNoOp;
  std::vector<OpId> users;  // measured lines of the device between the two, of the same call
};

// What was allocated and freed directly by one operator, in one call of it. Ascending by `alloc`.
std::vector<CallWorkspace> measured_workspaces(const Trace& measured, const OperatorCalls& calls);

// By op of the complete step: is it the allocation or the free of a workspace all of whose lines are paired with users
// of measured ones? Those are known better.
std::vector<bool> replaced_workspaces(const Trace& complete, const std::vector<LinePair>& pairs,
                                      const std::vector<CallWorkspace>& measured);

}  // namespace memwall
