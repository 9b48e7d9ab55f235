#include "policies/recipe/unfused_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "policies/recipe/attention_calls.h"
#include "policies/recipe/attention_operators.h"
#include "policies/recipe/dropped_storages.h"
#include "policies/recipe/gradient_sums.h"
#include "policies/recipe/program_writer.h"
#include "policies/recipe/turned_gradients.h"
#include "policies/trace/described.h"
#include "policies/trace/operator_name.h"
#include "policies/trace/trace_edit.h"

namespace memwall {
namespace {

class AttentionUnfolding {
 public:
  AttentionUnfolding(const Trace& trace, const Machine& machine, const Pricer& pricer, bool dropout)
      : t_(trace),
        flow_(trace),
        edit_(trace, machine.host),
        writer_(edit_, pricer),
        operators_(flow_, edit_, writer_),
        copies_(trace, flow_, edit_, writer_),
        dropout_(dropout),
        sums_in_place_(!sums_gradients_anew(trace)) {}

  Trace apply() && {
    for (const FusedAttentionCall& call : fused_attention_calls(t_, flow_)) {
      Kept kept = forward(call);
      backward(call, kept);
      copies_.copy({call.of_query, call.of_key, call.of_value}, call.backward,
                   {.batch = call.batch, .heads = call.heads, .key_heads = call.key_heads}, call.type);
      end_operands(call);
    }
    return without_storages(std::move(edit_).apply(), dropped_);
  }

 private:
  struct Kept {  // for backward; the softmax's result, and what of it is left behind dropout
    WrittenTensor query, key, value, weights, left, mask;
  };

  // Heads of one sequence, or one head of each, fold into one dimension where they lie.
  static bool copies_operands(const FusedAttentionCall& c) { return c.batch > 1 && c.heads > 1; }
  static bool shares_heads(const FusedAttentionCall& c) { return c.heads != c.key_heads; }
  static bool is_low(const FusedAttentionCall& c) { return c.type != DataType::fp32; }

  // --- forward

  // Tensors of a subclass, as under fake tensors, get a sum of their own (areAnyTensorSubclassLike).
  WrittenTensor masked(const WrittenTensor& scores, const WrittenTensor& mask) {
    const char* const name = sums_in_place_ ? "aten::add_" : "aten::add";
    const WrittenTensor y = sums_in_place_ ? scores : writer_.make(name, scores.shape, scores.type);
    writer_.kernel(elementwise_work(name, scores.type, scores.elements()), {&scores, &mask}, {&y});
    if (!sums_in_place_) writer_.free(scores);
    return y;
  }

  void drop_out(Kept& kept) {
    const WrittenTensor& x = kept.weights;
    kept.left = writer_.make("aten::native_dropout", x.shape, x.type);
    kept.mask = writer_.make("aten::native_dropout", x.shape, DataType::boolean);
    writer_.kernel(elementwise_work("aten::native_dropout", x.type, x.elements()), {&x}, {&kept.left, &kept.mask});
  }

  // Queries, keys and values in fp32.
  struct Wide {
    WrittenTensor query, key, value;
  };

  Kept forward(const FusedAttentionCall& c) {
    remove_call(c.forward, {c.result});
    writer_.move_to({c.forward, false}, t_.ops[c.forward]);
    const bool low = is_low(c), copies = copies_operands(c), shared = shares_heads(c), turned = is_turned(c);
    const Wide x{operators_.wide({c.query, {c.batch, c.heads, c.queries, c.size}, c.type}, low),
                 operators_.wide({c.key, {c.batch, c.key_heads, c.keys, c.size}, c.type}, low),
                 operators_.wide({c.value, {c.batch, c.key_heads, c.keys, c.value_size}, c.type}, low)};
    const WrittenTensor query = operators_.elementwise("aten::mul", x.query);
    const WrittenTensor mask = c.causal ? operators_.causal_mask(c.queries, c.keys) : WrittenTensor();
    Kept kept;
    const WrittenTensor all_keys = operands(c, x, query, kept);
    WrittenTensor scores =
        operators_.bmm(kept.query, kept.key, {c.batch * c.heads, c.queries, c.keys, c.size}, kNoStorage, c.told);
    if (all_keys && !shared) writer_.free(all_keys);
    if (mask) scores = masked(scores, mask);
    kept.left = kept.weights = operators_.safe_softmax(scores);
    if (dropout_) drop_out(kept);
    const WrittenTensor unread = low ? operators_.moved("aten::_to_copy", kept.left, c.type) : WrittenTensor();
    if (!shared) kept.value = copies ? operators_.copied(x.value) : x.value;
    WrittenTensor y = operators_.bmm(kept.left, kept.value, {c.batch * c.heads, c.queries, c.value_size, c.keys},
                                     turned || low ? kNoStorage : c.result, c.told);
    if (low) y = lowered(c, y, turned);
    if (shared) writer_.free(all_keys);
    if (copies) writer_.free(query);
    if (mask) writer_.free(mask);
    if (low && (copies || shared)) writer_.free(x.value);
    if (low)
      for (const WrittenTensor* one : {&x.key, &x.query, &unread}) writer_.free(*one);
    for (const StorageId id : operands_of(c))
      if (end_of_operand(c, id) == c.forward) end_here(id);
    if (turned) copy_result(c, y);
    return kept;
  }

  // What both products read. Heads that are shared are copied for all, and lie in a row then; else each operand is
  // copied where it does not. Returns what is left of the keys beside what is kept.
  WrittenTensor operands(const FusedAttentionCall& c, const Wide& x, const WrittenTensor& query, Kept& kept) {
    const bool copies = copies_operands(c);
    if (shares_heads(c)) {
      const WrittenTensor keys = operators_.repeated(x.key, {c.batch, c.heads, c.keys, c.size});
      kept.value = operators_.repeated(x.value, {c.batch, c.heads, c.keys, c.value_size});
      kept.key = operators_.elementwise("aten::mul", keys);
      kept.query = copies ? operators_.copied(query) : query;
      return keys;
    }
    const WrittenTensor keys = operators_.elementwise("aten::mul", x.key);
    kept.query = copies ? operators_.copied(query) : query;
    kept.key = copies ? operators_.copied(keys) : keys;
    return copies ? keys : WrittenTensor();
  }

  WrittenTensor lowered(const FusedAttentionCall& c, const WrittenTensor& x, bool turned) {
    const WrittenTensor y = operators_.moved("aten::_to_copy", x, c.type, turned ? kNoStorage : c.result);
    writer_.free(x);
    return y;
  }

  // The product behind reads heads beside each other.
  OpId reader_of(const FusedAttentionCall& c) const {
    for (const Touch& touch : flow_.touches(c.result))
      if (touch.op > c.forward && touch.reads && t_.ops[touch.op].phase == Phase::forward) return touch.op;
    return kNoOp;
  }
  bool is_turned(const FusedAttentionCall& c) const {
    const OpId reader = reader_of(c);
    return c.heads > 1 && reader != kNoOp && is_matrix_product(t_, t_.ops[reader]);
  }

  // What the product keeps is the copy; the result goes when the program has let go of it.
  void copy_result(const FusedAttentionCall& c, const WrittenTensor& y) {
    operators_.moved("aten::clone", y, y.type, c.result);
    const OpId said = t_.storages[c.result].last_referenced, reader = reader_of(c);
    const OpId until = said == kNoOp ? reader : std::max(said, reader);
    writer_.move_to({until, true}, t_.ops[c.forward]);
    writer_.free(y);
  }

  // --- backward

  void backward(const FusedAttentionCall& c, const Kept& kept) {
    remove_call(c.backward, {c.of_query, c.of_key, c.of_value});
    Op like = t_.ops[c.backward];
    like.module = t_.ops[c.forward].module;
    writer_.move_to({c.backward, false}, like);
    const bool low = is_low(c);
    const std::int64_t all = c.batch * c.heads;
    const WrittenTensor g = gradient_for_products(c, like);
    const bool gives_value = !low && !shares_heads(c);
    WrittenTensor of_v = operators_.bmm(kept.left, g, {all, c.keys, c.value_size, c.queries},
                                        gives_value ? c.of_value : kNoStorage, false);
    WrittenTensor of_weights = operators_.bmm(g, kept.value, {all, c.queries, c.keys, c.value_size}, kNoStorage, false);
    if (g.storage == c.given)
      end_given(c);
    else
      writer_.free(g);
    if (kept.value.storage != c.value) writer_.free(kept.value);
    if (dropout_) {
      writer_.free(kept.left);
      const WrittenTensor y = writer_.make("aten::native_dropout_backward", of_weights.shape, of_weights.type);
      writer_.kernel(elementwise_work("aten::native_dropout_backward", y.type, y.elements()), {&of_weights, &kept.mask},
                     {&y});
      writer_.free(of_weights);
      writer_.free(kept.mask);
      of_weights = y;
    }
    const WrittenTensor of_scores = operators_.softmax_backward(of_weights, kept.weights);
    const WrittenTensor k = operators_.bmm(kept.query, of_scores, {all, c.size, c.keys, c.queries}, kNoStorage, false);
    const WrittenTensor q = operators_.bmm(of_scores, kept.key, {all, c.queries, c.size, c.keys}, kNoStorage, false);
    for (const WrittenTensor* one : {&of_scores, &kept.key, &kept.query}) writer_.free(*one);
    scale_and_lower(c, like, of_v, k, q);
  }

  void scale_and_lower(const FusedAttentionCall& c, const Op& like, WrittenTensor of_v, const WrittenTensor& k,
                       const WrittenTensor& q) {
    const bool low = is_low(c), shared = shares_heads(c);
    WrittenTensor of_k = operators_.scaled(k, low || shared ? kNoStorage : c.of_key);
    if (shared) {
      writer_.in_module(0);
      of_v = operators_.summed(of_v, {c.batch, c.key_heads, c.keys, c.value_size}, low ? kNoStorage : c.of_value);
      of_k = operators_.summed(of_k, {c.batch, c.key_heads, c.keys, c.size}, low ? kNoStorage : c.of_key);
      writer_.in_module(like.module);
    }
    const WrittenTensor of_q = operators_.scaled(q, low ? kNoStorage : c.of_query);
    if (!low) return;
    const std::pair<const WrittenTensor*, StorageId> all[] = {
        {&of_v, c.of_value}, {&of_k, c.of_key}, {&of_q, c.of_query}};
    for (const auto& [from, to] : all) {
      operators_.moved("aten::_to_copy", *from, c.type, to);
      writer_.free(*from);
    }
  }

  // In fp32, and copied where heads lie behind their tokens.
  WrittenTensor gradient_for_products(const FusedAttentionCall& c, const Op& like) {
    WrittenTensor g{c.given, {c.batch, c.heads, c.queries, c.value_size}, c.type};
    if (is_low(c)) {
      g = operators_.wide(g, true);
      end_given(c);
    }
    if (!copies_operands(c)) return g;
    writer_.in_module(0);
    const WrittenTensor copy = operators_.copied(g);
    writer_.in_module(like.module);
    if (g.storage == c.given)
      end_given(c);
    else
      writer_.free(g);
    return copy;
  }

  // Here, if nothing of backward reads it later.
  void end_given(const FusedAttentionCall& c) {
    const OpId freed = flow_.free(c.given);
    if (freed == kNoOp || flow_.touches(c.given).back().op > c.backward) return;
    edit_.remove(freed);
    writer_.free(c.given);
  }

  // --- lifetimes

  // The op, with what it makes; `kept` is made by others.
  void remove_call(OpId id, const std::set<StorageId>& kept) {
    edit_.remove(id);
    for (const Use& use : t_.uses_of(t_.ops[id])) {
      if (use.access != Access::write || kept.contains(use.storage)) continue;
      for (const OpId lifetime : {flow_.alloc(use.storage), flow_.free(use.storage)})
        if (lifetime != kNoOp) edit_.remove(lifetime);
      dropped_.insert(use.storage);
    }
  }

  // Autograd has kept operands and result for the fused kernel's backward: they go with who else holds them.
  static std::set<StorageId> operands_of(const FusedAttentionCall& c) {
    std::set<StorageId> operands{c.query, c.key, c.value, c.result};
    if (!is_low(c) && !copies_operands(c) && !shares_heads(c))
      operands.erase(c.value);  // the second product keeps it as it is
    return operands;
  }

  void end_operands(const FusedAttentionCall& c) {
    for (const StorageId id : operands_of(c)) {
      const OpId until = end_of_operand(c, id);
      if (until == kNoOp || until == c.forward) continue;
      writer_.move_to({until, true}, t_.ops[until]);
      end_here(id);
    }
  }

  void end_here(StorageId id) {
    edit_.remove(flow_.free(id));
    writer_.free(id);
  }

  // The op behind which nobody holds it; kNoOp: it goes when it went.
  OpId end_of_operand(const FusedAttentionCall& c, StorageId id) const {
    const OpId freed = flow_.free(id);
    if (freed == kNoOp || freed < c.backward) return kNoOp;
    OpId forward = c.forward, backward = kNoOp;
    for (const Touch& touch : flow_.touches(id)) {
      if (touch.op == c.backward) continue;
      (t_.ops[touch.op].phase == Phase::backward ? backward : forward) = touch.op;
    }
    if (backward != kNoOp) return backward > c.backward ? kNoOp : copies_.end_of_node(backward);
    const OpId said = t_.storages[id].last_referenced;
    return said == kNoOp ? forward : std::max(said, forward);
  }

  const Trace& t_;
  const Dataflow flow_;
  TraceEdit edit_;
  ProgramWriter writer_;
  AttentionOperators operators_;
  TurnedGradients copies_;
  const bool dropout_, sums_in_place_;
  std::set<StorageId> dropped_;
};

}  // namespace

std::string unfused_obstacle(const Trace& trace) {
  const Dataflow flow(trace);
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    if (!is_fused_attention(trace, op)) continue;
    if (op.phase == Phase::recompute)
      return "attention runs forward again; expected a step without checkpointing (it may stand behind).";
    if (op.dispatch == Dispatch::compiled)
      return described_op(trace, id) +
             " is called by compiled code, whose kernels beside it would be others; expected a "
             "step without torch.compile (the policy compile may stand behind).";
  }
  for (const FusedAttentionCall& call : fused_attention_calls(trace, flow)) {
    const std::string op = described_op(trace, call.forward);
    if (call.masked) return op + " has a mask that is a tensor, which is not implemented with the scores in memory.";
    if (call.key_heads == 0 || call.heads % call.key_heads != 0)
      return fmt::format("{} has {} heads of queries and {} of keys; expected a multiple.", op, call.heads,
                         call.key_heads);
    if (call.backward == kNoOp || call.given == kNoStorage) return "of " + op + " the backward is not told.";
    for (const StorageId gradient : {call.of_query, call.of_key, call.of_value})
      if (flow.touches(gradient).back().op == call.backward)
        return described_op(trace, call.backward) +
               " makes a gradient that nobody asks for, which PyTorch's operators "
               "would not; that is not implemented.";
  }
  return "";
}

Trace with_unfused_attention(const Trace& trace, const Machine& machine, const Pricer& pricer, bool dropout) {
  return AttentionUnfolding(trace, machine, pricer, dropout).apply();
}

}  // namespace memwall
