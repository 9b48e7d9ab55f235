// What the work of an operator of an ExecutionTrace is made of (Op::shape), by the rules of work_shape.h.
#pragma once

#include "models/workload/import/execution_trace/execution_trace.h"
#include "models/workload/import/execution_trace/operator_cost.h"
#include "sim/trace/shape.h"

namespace memwall {

// {} = unknown. `cost`: of the same node.
Shape shape_of(const ExecutionTrace& execution, const ExecutionNode& node, const OperatorCost& cost);

// Kernels that the operator runs, as far as its tensors tell: of a convolution's backward one for each gradient, of any
// other 1. A lower bound: the products within an attention's backward, say, are not told apart.
std::uint16_t kernels_of(const ExecutionTrace& execution, const ExecutionNode& node);

}  // namespace memwall
