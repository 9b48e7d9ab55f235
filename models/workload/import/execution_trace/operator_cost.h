// What an operator of an ExecutionTrace costs, by its shapes: FLOPs, bytes, data type.
#pragma once

#include "models/workload/import/execution_trace/execution_trace.h"
#include "models/workload/import/timed/operator_call.h"

namespace memwall {

OperatorCost cost_of(const ExecutionTrace& execution, const ExecutionNode& node);

}  // namespace memwall
