#include "policies/recipe/unfused_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "policies/recipe/attention_calls.h"
#include "policies/recipe/dropped_storages.h"
#include "policies/recipe/gradient_sums.h"
#include "policies/recipe/program_writer.h"
#include "policies/recipe/turned_gradients.h"
#include "policies/trace/described.h"
#include "policies/trace/trace_edit.h"

namespace memwall {
namespace {

// Of aten::_safe_softmax: softmax, a number filled in, the comparison with it, whether that is so in all of a row,
// another number, and the choice.
constexpr int kKernelsOfSafeSoftmax = 6;
// Per element: 5 of softmax, and one of each of the others. Of _softmax_backward_data as captures count it.
constexpr double kSafeSoftmaxFlops = 8, kSoftmaxBackwardFlops = 4;

class AttentionUnfolding {
 public:
  AttentionUnfolding(const Trace& trace, const Machine& machine, const Pricer& pricer, bool dropout)
      : t_(trace),
        flow_(trace),
        edit_(trace, machine.host),
        writer_(edit_, pricer),
        copies_(trace, flow_, edit_, writer_),
        dropout_(dropout),
        sums_in_place_(!sums_gradients_anew(trace)) {}

  Trace apply() && {
    for (const FusedAttentionCall& call : fused_attention_calls(t_, flow_)) {
      Kept kept = forward(call);
      backward(call, kept);
      copies_.copy({call.of_query, call.of_key, call.of_value}, call.backward, call.batch, call.heads, call.type);
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
  static bool is_low(const FusedAttentionCall& c) { return c.type != DataType::fp32; }

  // --- calls of operators

  WrittenTensor same(std::string_view name, const WrittenTensor& x, DataType type) {
    const WrittenTensor y = writer_.make(name, x.shape, type);
    writer_.kernel(elementwise_work(name, type, x.elements()), {&x}, {&y});
    return y;
  }

  WrittenTensor moved(std::string_view name, const WrittenTensor& x, DataType type) {
    const WrittenTensor y = writer_.make(name, x.shape, type);
    writer_.kernel(memory_work(name, arithmetic(x.type), x.elements()), {&x}, {&y});
    return y;
  }
  // Captures name none of truth values.
  static DataType arithmetic(DataType type) { return type == DataType::boolean ? DataType::unknown : type; }
  WrittenTensor wide(const WrittenTensor& x, bool low) { return low ? moved("aten::_to_copy", x, DataType::fp32) : x; }
  WrittenTensor copied(const WrittenTensor& x) { return moved("aten::clone", x, x.type); }

  WrittenTensor filled(std::string_view name, const Shape& shape, DataType type) {
    const WrittenTensor y = writer_.make(name, shape, type);
    writer_.kernel(memory_work(name, arithmetic(type), y.elements()), {}, {&y});
    return y;
  }

  // Of so many products m x k with k x n. What autograd keeps of both is named with the second first.
  WrittenTensor bmm(const WrittenTensor& a, const WrittenTensor& b, const Shape& sizes, StorageId result, bool saves) {
    const Shape shape{sizes[0], sizes[1], sizes[2]};
    const WrittenTensor y = result == kNoStorage ? writer_.make("aten::bmm", shape, DataType::fp32)
                                                 : revived(result, "aten::bmm", shape, DataType::fp32);
    OperatorWork work = product_work(DataType::fp32, sizes[1], sizes[2], sizes[3]);
    work.name = "aten::bmm";
    work.flops *= static_cast<double>(sizes[0]);
    work.shape = sizes;
    if (saves) {
      writer_.save_next();
      writer_.kernel(work, {&b, &a}, {&y});
    } else {
      writer_.kernel(work, {&a, &b}, {&y});
    }
    return y;
  }

  // A storage of the step that is made here now.
  WrittenTensor revived(StorageId id, std::string_view label, const Shape& shape, DataType type) {
    if (const OpId alloc = flow_.alloc(id); alloc != kNoOp) edit_.remove(alloc);
    edit_.tables().storages[id].label = edit_.tables().strings.intern(label);
    writer_.alloc(id);
    return {id, shape, type};
  }

  OperatorWork rows_work(std::string_view name, const WrittenTensor& scores, double per_element) const {
    const std::int64_t width = scores.shape.back();
    return {.name = name,
            .operator_class = OperatorClass::reduction,
            .type = DataType::fp32,
            .flops = per_element * static_cast<double>(scores.elements()),
            .shape = {scores.elements() / width, width}};
  }

  // --- forward

  // True below the diagonal, then zeros and minus infinity.
  WrittenTensor causal_mask(const FusedAttentionCall& c) {
    const WrittenTensor ones = filled("aten::ones", {c.queries, c.keys}, DataType::boolean);
    const WrittenTensor lower = moved("aten::tril", ones, DataType::boolean);
    writer_.free(ones);
    const WrittenTensor infinity = filled("aten::scalar_tensor", {}, DataType::fp32);
    const WrittenTensor zero = filled("aten::scalar_tensor", {}, DataType::fp32);
    const WrittenTensor mask = writer_.make("aten::where", lower.shape, DataType::fp32);
    writer_.kernel(elementwise_work("aten::where", DataType::fp32, mask.elements()), {&lower, &zero, &infinity},
                   {&mask});
    for (const WrittenTensor* one : {&zero, &infinity, &lower}) writer_.free(*one);
    return mask;
  }

  // Tensors of a subclass, as under fake tensors, get a sum of their own (areAnyTensorSubclassLike).
  WrittenTensor masked(const WrittenTensor& scores, const WrittenTensor& mask) {
    const char* const name = sums_in_place_ ? "aten::add_" : "aten::add";
    const WrittenTensor y = sums_in_place_ ? scores : writer_.make(name, scores.shape, scores.type);
    writer_.kernel(elementwise_work(name, scores.type, scores.elements()), {&scores, &mask}, {&y});
    if (!sums_in_place_) writer_.free(scores);
    return y;
  }

  WrittenTensor softmax(const WrittenTensor& scores) {
    const WrittenTensor y = writer_.make("aten::_safe_softmax", scores.shape, scores.type);
    OperatorWork work = rows_work("aten::_safe_softmax", scores, kSafeSoftmaxFlops);
    work.kernels = kKernelsOfSafeSoftmax;
    work.bytes = 5 * scores.bytes() + 2 * scores.elements();  // softmax, comparison and choice; truth values twice
    writer_.kernel(work, {&scores}, {&y});
    writer_.free(scores);
    return y;
  }

  void drop_out(Kept& kept) {
    const WrittenTensor& x = kept.weights;
    kept.left = writer_.make("aten::native_dropout", x.shape, x.type);
    kept.mask = writer_.make("aten::native_dropout", x.shape, DataType::boolean);
    writer_.kernel(elementwise_work("aten::native_dropout", x.type, x.elements()), {&x}, {&kept.left, &kept.mask});
  }

  Kept forward(const FusedAttentionCall& c) {
    const bool low = is_low(c), copies = copies_operands(c);
    remove_call(c.forward, {c.result});
    writer_.move_to({c.forward, false}, t_.ops[c.forward]);
    const WrittenTensor q = wide({c.query, {c.batch, c.heads, c.queries, c.size}, c.type}, low);
    const WrittenTensor k = wide({c.key, {c.batch, c.heads, c.keys, c.size}, c.type}, low);
    const WrittenTensor v = wide({c.value, {c.batch, c.heads, c.keys, c.value_size}, c.type}, low);
    const WrittenTensor scaled_q = same("aten::mul", q, DataType::fp32);
    const WrittenTensor mask = c.causal ? causal_mask(c) : WrittenTensor();
    const WrittenTensor scaled_k = same("aten::mul", k, DataType::fp32);
    Kept kept;
    kept.query = copies ? copied(scaled_q) : scaled_q;
    kept.key = copies ? copied(scaled_k) : scaled_k;
    const std::int64_t all = c.batch * c.heads;
    WrittenTensor scores = bmm(kept.query, kept.key, {all, c.queries, c.keys, c.size}, kNoStorage, c.told);
    if (copies) writer_.free(scaled_k);
    if (mask) scores = masked(scores, mask);
    kept.left = kept.weights = softmax(scores);
    if (dropout_) drop_out(kept);
    const WrittenTensor unread = low ? moved("aten::_to_copy", kept.left, c.type) : WrittenTensor();
    kept.value = copies ? copied(v) : v;
    const bool turned = is_turned(c);
    const StorageId made = turned || low ? kNoStorage : c.result;
    WrittenTensor y = bmm(kept.left, kept.value, {all, c.queries, c.value_size, c.keys}, made, c.told);
    if (low) y = lowered(c, y, turned);
    if (copies) writer_.free(scaled_q);
    if (mask) writer_.free(mask);
    if (low && copies) writer_.free(v);
    if (low) {
      for (const WrittenTensor* one : {&k, &q}) writer_.free(*one);
      writer_.free(unread);
    }
    for (const StorageId id : operands_of(c))
      if (end_of_operand(c, id) == c.forward) end_here(id);
    if (turned) copy_result(c, y);
    return kept;
  }

  WrittenTensor lowered(const FusedAttentionCall& c, const WrittenTensor& x, bool turned) {
    const WrittenTensor y =
        turned ? writer_.make("aten::_to_copy", x.shape, c.type) : revived(c.result, "aten::_to_copy", x.shape, c.type);
    writer_.kernel(memory_work("aten::_to_copy", x.type, x.elements()), {&x}, {&y});
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
    return c.heads > 1 && reader != kNoOp && is_matrix_product(t_, reader);
  }

  // What the product keeps is the copy; the result goes when the program has let go of it.
  void copy_result(const FusedAttentionCall& c, const WrittenTensor& y) {
    const WrittenTensor copy = revived(c.result, "aten::clone", y.shape, y.type);
    writer_.kernel(memory_work("aten::clone", y.type, y.elements()), {&y}, {&copy});
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
    WrittenTensor of_v =
        bmm(kept.left, g, {all, c.keys, c.value_size, c.queries}, low ? kNoStorage : c.of_value, false);
    WrittenTensor of_weights = bmm(g, kept.value, {all, c.queries, c.keys, c.value_size}, kNoStorage, false);
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
    const WrittenTensor of_scores = softmax_backward(of_weights, kept.weights);
    const WrittenTensor k = bmm(kept.query, of_scores, {all, c.size, c.keys, c.queries}, kNoStorage, false);
    const WrittenTensor q = bmm(of_scores, kept.key, {all, c.queries, c.size, c.keys}, kNoStorage, false);
    for (const WrittenTensor* one : {&of_scores, &kept.key, &kept.query}) writer_.free(*one);
    scale_and_lower(c, of_v, k, q);
  }

  WrittenTensor softmax_backward(const WrittenTensor& given, const WrittenTensor& weights) {
    const WrittenTensor y = writer_.make("aten::_softmax_backward_data", given.shape, given.type);
    writer_.kernel(rows_work("aten::_softmax_backward_data", y, kSoftmaxBackwardFlops), {&given, &weights}, {&y});
    for (const WrittenTensor* one : {&given, &weights}) writer_.free(*one);
    return y;
  }

  void scale_and_lower(const FusedAttentionCall& c, const WrittenTensor& of_v, const WrittenTensor& k,
                       const WrittenTensor& q) {
    const bool low = is_low(c);
    const WrittenTensor of_k = scaled(k, low ? kNoStorage : c.of_key);
    const WrittenTensor of_q = scaled(q, low ? kNoStorage : c.of_query);
    if (!low) return;
    const std::pair<const WrittenTensor*, StorageId> all[] = {
        {&of_v, c.of_value}, {&of_k, c.of_key}, {&of_q, c.of_query}};
    for (const auto& [from, to] : all) {
      const WrittenTensor y = revived(to, "aten::_to_copy", from->shape, c.type);
      writer_.kernel(memory_work("aten::_to_copy", from->type, from->elements()), {from}, {&y});
      writer_.free(*from);
    }
  }

  WrittenTensor scaled(const WrittenTensor& x, StorageId result) {
    const WrittenTensor y = result == kNoStorage ? writer_.make("aten::mul", x.shape, x.type)
                                                 : revived(result, "aten::mul", x.shape, x.type);
    writer_.kernel(elementwise_work("aten::mul", x.type, x.elements()), {&x}, {&y});
    writer_.free(x);
    return y;
  }

  // In fp32, and copied where heads lie behind their tokens.
  WrittenTensor gradient_for_products(const FusedAttentionCall& c, const Op& like) {
    WrittenTensor g{c.given, {c.batch, c.heads, c.queries, c.value_size}, c.type};
    if (is_low(c)) {
      g = wide(g, true);
      end_given(c);
    }
    if (!copies_operands(c)) return g;
    writer_.in_module(0);
    const WrittenTensor copy = copied(g);
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
    if (!is_low(c) && !copies_operands(c)) operands.erase(c.value);  // the second product keeps it as it is
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
  TurnedGradients copies_;
  const bool dropout_, sums_in_place_;
  std::set<StorageId> dropped_;
};

}  // namespace

std::string unfused_obstacle(const Trace& trace) {
  const Dataflow flow(trace);
  for (const Op& op : trace.ops)
    if (is_fused_attention(trace, op) && op.phase == Phase::recompute)
      return "attention runs forward again; expected a step without checkpointing (it may stand behind).";
  for (const FusedAttentionCall& call : fused_attention_calls(trace, flow)) {
    const std::string op = described_op(trace, call.forward);
    if (call.masked) return op + " has a mask that is a tensor, which is not implemented with the scores in memory.";
    if (call.heads != call.key_heads)
      return fmt::format(
          "{} has {} heads of queries and {} of keys: how the shared ones are copied is not implemented.", op,
          call.heads, call.key_heads);
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
