// Which node of autograd's graph each op of a capture belongs to, by the sequence numbers of its operators.
#pragma once

#include <vector>

#include "models/workload/import/execution_trace/execution_trace.h"
#include "models/workload/import/execution_trace/operator_match.h"
#include "models/workload/import/timed/timed_import.h"
#include "models/workload/saved_tensors.h"

namespace memwall {

// By op of imported.trace: the number of the innermost operator around it that has one; its call is the outermost with
// that number (of aten::conv2d's kernels, one of which adds the bias). An operator with a forward thread is a function
// of backward. `execution`, of the same run with its match, says what `capture` does not; or both
// are null. REQUIRES: imported.operator_of_op has an entry per op.
std::vector<AutogradNode> autograd_nodes(const ImportedTrace& imported, const TimedCapture& capture,
                                         const ExecutionTrace* execution = nullptr,
                                         const OperatorMatch* match = nullptr);

}  // namespace memwall
