// Attention with its scores in memory, as a program writes it: a product of queries and keys, scaled, masked, softmax,
// dropout, a product with the values; and what backward runs for it.
#pragma once

#include <vector>

#include "policies/recipe/backward_nodes.h"
#include "policies/trace/dataflow.h"
#include "sim/trace/trace.h"

namespace memwall {

struct AttentionChain {
  // Of forward, in order: the products, what stands between, copies of operands and of the result that only these need.
  std::vector<OpId> forward{}, backward{};
  OpId scores = kNoOp, weighted = kNoOp;                               // the two products
  StorageId query = kNoStorage, key = kNoStorage, value = kNoStorage;  // as they are before they are copied
  StorageId result = kNoStorage;
  bool causal = false;
  bool complete = false;  // is its backward told, and its mask none or causal?
  // Of backward: the gradient of the result, and those of the three.
  StorageId given = kNoStorage, of_query = kNoStorage, of_key = kNoStorage, of_value = kNoStorage;
};

// Those of a pass; what is read by others, too, is none. `nodes`: of the pass.
std::vector<AttentionChain> attention_chains(const Trace& trace, const Dataflow& flow, const Pass& pass,
                                             const std::vector<BackwardNode>& nodes);

}  // namespace memwall
