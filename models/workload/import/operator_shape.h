// What the work of an operator of an ExecutionTrace is made of (Op::shape), by the rules of capture_shapes.h.
#pragma once

#include "models/workload/import/execution_trace.h"
#include "models/workload/import/operator_cost.h"
#include "sim/shape.h"

namespace memwall {

// {} = unknown. `cost`: of the same node.
Shape shape_of(const ExecutionTrace& execution, const ExecutionNode& node, const OperatorCost& cost);

// Kernels that the operator runs at least: one per gradient of a convolution, per matrix product of an attention's
// backward and the like are not told apart; else 1.
std::uint16_t kernels_of(const ExecutionTrace& execution, const ExecutionNode& node);

}  // namespace memwall
