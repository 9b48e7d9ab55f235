#include "policies/recipe/attention_calls.h"

#include <algorithm>

namespace memwall {
namespace {

bool is_backward_call(const Trace& t, const Op& op) { return t.strings[op.operator_name].ends_with("_backward"); }

// Numbers: neither seeds nor other whole numbers, nor sums of rows, which are fp32.
Bytes bytes_of_queries(const FusedAttentionCall& c) {
  return c.batch * c.heads * c.queries * c.size * bytes_of(c.type);
}

// What autograd keeps is named in the order of derivatives.yaml: key, query, value.
void take_forward(const Trace& t, OpId id, FusedAttentionCall& c) {
  const Op& op = t.ops[id];
  const Shape& s = t.shapes[op.shape];
  c.forward = id;
  c.type = op.data_type;
  c.batch = s[0], c.heads = s[1], c.key_heads = s[2], c.queries = s[3], c.keys = s[4], c.size = s[5];
  c.causal = s[6] != 0;
  std::vector<StorageId> operands;
  for (const Use& use : t.uses_of(op)) {
    if (use.access == Access::read) operands.push_back(use.storage);
    c.told = c.told || use.saved;
    if (use.access == Access::write &&
        (c.result == kNoStorage || t.storages[use.storage].bytes > t.storages[c.result].bytes))
      c.result = use.storage;
  }
  c.masked = operands.size() > 3;
  if (operands.empty() || c.masked || c.result == kNoStorage) return;
  if (c.told && operands.size() > 1) std::swap(operands[0], operands[1]);
  c.query = operands.front();
  c.key = operands.size() > 1 ? operands[1] : c.query;
  c.value = operands.back();
  const Bytes rows = c.batch * c.heads * c.queries * bytes_of(c.type);
  c.value_size = rows == 0 ? 0 : t.storages[c.result].bytes / rows;
}

void take_backward(const Trace& t, const Dataflow& flow, OpId id, FusedAttentionCall& c) {
  const Op& op = t.ops[id];
  std::vector<StorageId> gradients;
  for (const Use& use : t.uses_of(op)) {
    const OpId writer = flow.writer(use.storage, use.version);
    if (use.access == Access::write)
      gradients.push_back(use.storage);
    else if (writer != kNoOp && t.ops[writer].phase == Phase::backward)
      c.given = use.storage;
  }
  if (gradients.size() != 3 || t.storages[gradients[0]].bytes < bytes_of_queries(c)) return;
  c.backward = id;
  c.of_query = gradients[0], c.of_key = gradients[1], c.of_value = gradients[2];
}

}  // namespace

bool is_fused_attention(const Trace& trace, const Op& op) {
  return op.kind == OpKind::kernel && op.operator_class == OperatorClass::attention &&
         trace.strings[op.operator_name].starts_with("aten::_scaled_dot_product_");
}

std::vector<FusedAttentionCall> fused_attention_calls(const Trace& trace, const Dataflow& flow) {
  std::vector<FusedAttentionCall> calls;
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    if (!is_fused_attention(trace, op) || is_backward_call(trace, op) || op.phase != Phase::forward) continue;
    FusedAttentionCall call;
    take_forward(trace, id, call);
    for (const Touch& touch : flow.touches(call.result)) {
      const Op& reader = trace.ops[touch.op];
      if (touch.op > id && is_fused_attention(trace, reader) && is_backward_call(trace, reader))
        take_backward(trace, flow, touch.op, call);
    }
    calls.push_back(call);
  }
  return calls;
}

}  // namespace memwall
