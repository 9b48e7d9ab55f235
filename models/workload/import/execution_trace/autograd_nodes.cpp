#include "models/workload/import/execution_trace/autograd_nodes.h"

namespace memwall {

std::vector<AutogradNode> autograd_nodes(const ImportedTrace& imported, const TimedCapture& capture,
                                         const ExecutionTrace* execution, const OperatorMatch* match) {
  const auto node_of = [&](std::uint32_t k) {
    const CapturedOperator& op = capture.operators[k];
    if (op.sequence_number >= 0 || execution == nullptr || match->node_of_operator[k] == kNoIndex)
      return AutogradNode{op.sequence_number, op.forward_thread > 0, k};
    const ExecutionNode& node = execution->nodes[match->node_of_operator[k]];
    return AutogradNode{node.sequence_number, node.forward_thread > 0, k};
  };
  std::vector<AutogradNode> nodes(imported.operator_of_op.size());
  for (OpId id = 0; id < nodes.size(); ++id)
    for (std::uint32_t k = imported.operator_of_op[id]; k != kNoIndex; k = capture.operators[k].parent) {
      const AutogradNode around = node_of(k);
      if (around.number < 0) continue;
      if (nodes[id].number < 0)
        nodes[id] = around;
      else if (around.number == nodes[id].number && around.runs == nodes[id].runs)
        nodes[id].call = k;
    }
  return nodes;
}

}  // namespace memwall
