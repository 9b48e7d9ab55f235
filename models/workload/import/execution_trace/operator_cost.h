// What an operator of an ExecutionTrace costs, by its shapes: FLOPs, bytes, data type.
#pragma once

#include "models/workload/import/execution_trace/execution_trace.h"
#include "sim/trace/op.h"

namespace memwall {

struct OperatorCost {
  double flops = 0;  // matrix products, convolutions and attention (models/workload/flops.h); 0 for others
  Bytes bytes = 0;   // device tensors received and returned, each once; of tables only the rows looked up
  DataType data_type = DataType::unknown;  // of the first floating-point device tensor, else of the first
};

OperatorCost cost_of(const ExecutionTrace& execution, const ExecutionNode& node);

}  // namespace memwall
