// Calls of fused attention, forward and backward, and what is whose operand.
#pragma once

#include <string>
#include <vector>

#include "policies/trace/dataflow.h"
#include "sim/trace/trace.h"

namespace memwall {

struct FusedAttentionCall {
  OpId forward = kNoOp, backward = kNoOp;                              // kNoOp: not told
  StorageId query = kNoStorage, key = kNoStorage, value = kNoStorage;  // may be one storage, of which each is a part
  StorageId result = kNoStorage;
  StorageId given = kNoStorage, of_query = kNoStorage, of_key = kNoStorage, of_value = kNoStorage;  // of backward
  std::int64_t batch = 0, heads = 0, key_heads = 0, queries = 0, keys = 0, size = 0, value_size = 0;
  bool causal = false, masked = false;  // masked: by a tensor
  bool told = false;                    // does the trace say what autograd keeps?
  DataType type = DataType::unknown;
};

// Is it a call of one of PyTorch's fused kernels (aten::_scaled_dot_product_..._attention), forward or backward?
bool is_fused_attention(const Trace& trace, const Op& op);

// In order. REQUIRES: their ops have the shape of attention.
std::vector<FusedAttentionCall> fused_attention_calls(const Trace& trace, const Dataflow& flow);

}  // namespace memwall
