// The operators behind a Chakra graph's device work, as an ExecutionTrace whose nodes follow the host's order.
//
// Converters list an operator's tensors at the operator and again at each of its kernels; older ones cut an operator
// into the pieces between its launches ("aten::mm(0)", "aten::mm(1)"). Pieces are one operator again, and kernels
// belong to the operator that launched them.
#pragma once

#include <vector>

#include "models/workload/import/chakra/chakra_order.h"
#include "models/workload/import/execution_trace/execution_order.h"

namespace memwall {

struct ChakraOperators {
  ExecutionTrace execution;                // takes the graph's tensors and strings
  std::vector<std::uint32_t> operator_of;  // by position: index into execution.nodes, or kNoIndex
  std::vector<std::uint32_t> launched_by;  // by position of device work: position of the host node, or kNoIndex
  bool pieces = false;                     // operators are cut
};

// The graph's tensors move; its names stay readable in the result's strings.
ChakraOperators operators_of(ChakraGraph& graph, const ChakraOrder& order);

}  // namespace memwall
