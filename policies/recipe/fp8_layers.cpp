#include "policies/recipe/fp8_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "policies/recipe/linear_layers.h"
#include "policies/recipe/program_writer.h"
#include "policies/trace/call_begin.h"
#include "policies/trace/operator_name.h"
#include "policies/trace/trace_edit.h"
#include "sim/error.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

class Fp8Writer {
 public:
  Fp8Writer(const Trace& trace, const Machine& machine, const Pricer& pricer)
      : t_(trace),
        found_(trace),
        flow_(found_.flow()),
        says_saved_(std::ranges::any_of(trace.uses, &Use::saved)),
        edit_(trace, machine.host),
        writer_(edit_, pricer) {}

  Trace apply() && {
    for (const LinearLayer& layer : found_.layers()) {
      forward(layer);
      backward(layer);
    }
    Trace result = std::move(edit_).apply();
    result.notes.push_back(
        fmt::format("precision: {} in fp8 as torchao's Float8Linear runs them eagerly, with one scale per tensor{}.",
                    counted_text(found_.layers().size(), "linear layer"),
                    found_.left() == 0 ? ""
                                       : fmt::format("; {} of widths that are no multiples of {} in bf16",
                                                     counted_text(found_.left(), "other"), LinearLayers::kMultiple)));
    return result;
  }

 private:
  struct Scaled {
    WrittenTensor values, scale;
  };
  using Sizes = std::array<std::int64_t, 3>;  // m, n, k

  std::string name_of(OpId id) const { return plain_operator_name(operator_of(t_, t_.ops[id])); }

  // --- calls of operators

  WrittenTensor elementwise(std::string_view name, const WrittenTensor& x, DataType type,
                            const WrittenTensor& other = {}) {
    const WrittenTensor y = writer_.make(name, x.shape, type);
    writer_.kernel(elementwise_work(name, type, x.elements()), {&x, &other}, {&y});
    return y;
  }

  WrittenTensor cast(const WrittenTensor& x, DataType type) {
    const WrittenTensor y = writer_.make("aten::_to_copy", x.shape, type);
    writer_.kernel(memory_work("aten::_to_copy", x.type, x.elements()), {&x}, {&y});
    return y;
  }

  void free(std::initializer_list<WrittenTensor> tensors) {
    for (const WrittenTensor& tensor : tensors) writer_.free(tensor);
  }

  // The largest number of fp8 over the largest of x, found in fp64.
  WrittenTensor scale_of(const WrittenTensor& x) {
    const WrittenTensor magnitudes = elementwise("aten::abs", x, x.type);
    const WrittenTensor most = writer_.make("aten::max", {}, x.type);
    writer_.kernel({.name = "aten::max",
                    .operator_class = OperatorClass::reduction,
                    .type = x.type,
                    .flops = static_cast<double>(x.elements()),
                    .shape = {1, x.elements()}},
                   {&magnitudes}, {&most});
    writer_.free(magnitudes);
    const WrittenTensor wide = cast(most, DataType::fp64);
    const WrittenTensor bounded = elementwise("aten::clamp", wide, DataType::fp64);
    const WrittenTensor inverse = elementwise("aten::reciprocal", bounded, DataType::fp64);
    const WrittenTensor scale = elementwise("aten::mul", inverse, DataType::fp64);
    free({inverse, bounded});
    const WrittenTensor narrow = cast(scale, DataType::fp32);
    free({scale, wide, most});
    return narrow;
  }

  Scaled to_fp8(const WrittenTensor& x) {
    Scaled y;
    y.scale = scale_of(x);
    const WrittenTensor wide = cast(x, DataType::fp32);
    const WrittenTensor product = elementwise("aten::mul", wide, DataType::fp32, y.scale);
    writer_.free(wide);
    const WrittenTensor bounded = elementwise("aten::clamp", product, DataType::fp32);
    y.values = cast(bounded, DataType::fp8);
    free({bounded, product});
    return y;
  }

  // The second factor by columns, the first by rows.
  WrittenTensor turned(const WrittenTensor& x) {
    const WrittenTensor y = writer_.make("aten::contiguous", x.shape, x.type);
    writer_.kernel(memory_work("aten::contiguous", x.type, x.elements()), {&x}, {&y});
    return y;
  }

  // Writes `result` if it is a tensor of the step (which then begins to live), else a new one. `before`: the product in
  // bf16, if there was one. `in_place`: the work takes its place.
  struct Product {
    const WrittenTensor &a, &b;
    const Scaled &left, &right;
    Sizes sizes;
    OpId before = kNoOp;
    bool in_place = false;
  };
  WrittenTensor scaled_mm(const Product& p, StorageId result) {
    const WrittenTensor left = elementwise("aten::reciprocal", p.left.scale, DataType::fp32);
    const WrittenTensor right = elementwise("aten::reciprocal", p.right.scale, DataType::fp32);
    const Shape shape{p.sizes[0], p.sizes[1]};
    WrittenTensor y{result, shape, DataType::bf16};
    if (y)
      alloc_as(result, "aten::_scaled_mm");
    else
      y = writer_.make("aten::_scaled_mm", shape, DataType::bf16);
    OperatorWork work = product_work(DataType::fp8, p.sizes[0], p.sizes[1], p.sizes[2]);
    work.name = "aten::_scaled_mm";
    if (p.before != kNoOp) work.instead_of = &t_.ops[p.before];
    if (p.in_place)
      writer_.kernel_in_place(p.before, work, {&p.a, &p.b, &left, &right}, {&y});
    else
      writer_.kernel(work, {&p.a, &p.b, &left, &right}, {&y});
    if (p.in_place) writer_.move_to({p.before, true}, t_.ops[p.before]);
    free({right, left});
    return y;
  }

  // A storage that the bf16 product makes: its own alloc goes.
  void alloc_as(StorageId storage, std::string_view label) {
    if (t_.storages[storage].kind != StorageKind::gradient)
      edit_.tables().storages[storage].label = edit_.tables().strings.intern(label);
    writer_.alloc(storage);
  }

  void remove_alloc(StorageId storage) {
    if (const OpId alloc = flow_.alloc(storage); alloc != kNoOp) edit_.remove(alloc);
  }

  StorageId written_by(OpId id) const {
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (use.access == Access::write) return use.storage;
    return kNoStorage;
  }

  // --- forward

  void forward(const LinearLayer& layer) {
    const OpId id = layer.product;
    const StorageId result = written_by(id);
    const WrittenTensor x{layer.x, {layer.rows, layer.k}, DataType::bf16};
    const WrittenTensor weight{layer.weight, {layer.n, layer.k}, DataType::bf16};
    writer_.in_node_of(t_.ops[id].source);
    writer_.move_to({call_begin(t_, id), false}, t_.ops[id]);
    remove_alloc(result);
    writer_.count_calls(2);  // t, and the view before
    if (says_saved_) writer_.save_next();
    const Scaled input = to_fp8(x);
    if (says_saved_) writer_.save_next();
    const Scaled factor = to_fp8(weight);
    const bool biased = layer.bias != kNoStorage;
    const WrittenTensor y = scaled_mm({.a = input.values,
                                       .b = factor.values,
                                       .left = input,
                                       .right = factor,
                                       .sizes = {layer.rows, layer.n, layer.k},
                                       .before = id,
                                       .in_place = true},
                                      biased ? kNoStorage : result);
    free({factor.values, factor.scale, input.values, input.scale});
    if (!biased) return;
    const WrittenTensor bias{layer.bias, {layer.n}, DataType::bf16}, sum{result, y.shape, y.type};
    alloc_as(result, "aten::add");
    writer_.kernel(elementwise_work("aten::add", y.type, y.elements()), {&y, &bias}, {&sum});
    writer_.free(y);
  }

  // --- backward

  // What of a node's ops is what.
  struct Backward {
    OpId of_x = kNoOp, of_weight = kNoOp, of_bias = kNoOp, copy = kNoOp;
    StorageId given = kNoStorage;  // the gradient, as products read it
  };

  bool reads(OpId id, StorageId storage) const {
    return std::ranges::any_of(t_.uses_of(t_.ops[id]),
                               [&](const Use& use) { return use.storage == storage && use.access == Access::read; });
  }

  Backward parts_of(const LinearLayer& layer) const {
    Backward parts;
    for (const OpId id : layer.node.ops) {
      const std::string name = name_of(id);
      if (name == "mm") (reads(id, layer.weight) ? parts.of_x : parts.of_weight) = id;
      if (name == "sum") parts.of_bias = id;
    }
    const OpId any = parts.of_x != kNoOp ? parts.of_x : parts.of_weight;
    for (const Use& use : t_.uses_of(t_.ops[any])) {
      const OpId writer = flow_.writer(use.storage, use.version);
      if (use.access == Access::read && writer != kNoOp && t_.ops[writer].phase == Phase::backward)
        parts.given = use.storage;
    }
    if (parts.given == kNoStorage) return parts;
    const OpId maker = flow_.writers(parts.given).back();
    if (name_of(maker) == "clone" && flow_.touches(parts.given).back().op <= layer.node.ops.back()) parts.copy = maker;
    return parts;
  }

  // AddBackward gives the bias its gradient before the layer's own node runs, and it is added at once to what there is
  // of earlier passes.
  void move_bias(const LinearLayer& layer, const Backward& parts) {
    if (parts.of_bias == kNoOp) return;
    const OpId first = parts.copy != kNoOp ? call_begin(t_, parts.copy) : call_begin(t_, first_product(parts));
    StorageId source = parts.given;
    if (parts.copy != kNoOp)
      for (const Use& use : t_.uses_of(t_.ops[parts.copy]))
        if (use.access == Access::read) source = use.storage;
    move(parts.of_bias, {first, false}, parts.given, source);
    const StorageId made = written_by(parts.of_bias);
    for (const BackwardNode& sum : layer.sums) {
      if (!reads(sum.ops.front(), made)) continue;
      move(sum.ops.front(), {first, false}, made, made);
      const OpId freed = flow_.free(made);
      if (freed == kNoOp || freed > sum.end) continue;
      edit_.remove(freed);
      edit_.insert_complete({first, false}, t_.ops[freed]);
    }
  }

  // With what it allocates, to another place, reading `to` instead of `from`.
  void move(OpId id, InsertionPoint point, StorageId from, StorageId to) {
    std::vector<Use> uses(t_.uses_of(t_.ops[id]).begin(), t_.uses_of(t_.ops[id]).end());
    for (Use& use : uses)
      if (use.access == Access::read && use.storage == from) use.storage = to;
    for (const Use& use : uses)
      if (const OpId alloc = flow_.alloc(use.storage);
          use.access == Access::write && alloc != kNoOp && alloc >= call_begin(t_, id) && alloc < id) {
        edit_.remove(alloc);
        edit_.insert_complete(point, t_.ops[alloc]);
      }
    edit_.remove(id);
    edit_.insert_complete(point, t_.ops[id], uses);
  }

  static OpId first_product(const Backward& parts) { return std::min(parts.of_x, parts.of_weight); }

  // Both gradients, asked for or not: the function is torchao's own.
  void backward(const LinearLayer& layer) {
    const Backward parts = parts_of(layer);
    move_bias(layer, parts);
    const OpId first = first_product(parts);
    const Sizes of_x{layer.rows, layer.k, layer.n}, of_weight{layer.n, layer.k, layer.rows};
    const WrittenTensor g{parts.given, {layer.rows, layer.n}, DataType::bf16};
    const WrittenTensor weight{layer.weight, {layer.n, layer.k}, DataType::bf16};
    const WrittenTensor x{layer.x, {layer.rows, layer.k}, DataType::bf16};
    writer_.in_node_of(t_.ops[first].source);
    writer_.move_to({call_begin(t_, first), false}, t_.ops[first]);
    const Scaled gradient = to_fp8(g), factor = to_fp8(weight);
    const WrittenTensor columns = turned(factor.values);
    const WrittenTensor unwanted = product_backward(parts.of_x, {gradient.values, columns, gradient, factor, of_x});
    writer_.free(columns);
    const Scaled again = to_fp8(g), input = to_fp8(x);
    const WrittenTensor rows = turned(again.values), input_columns = turned(input.values);
    product_backward(parts.of_weight, {rows, input_columns, again, input, of_weight});
    free({rows, input_columns});
    for (const Scaled* one : {&gradient, &factor, &again, &input}) free({one->values, one->scale});
    if (unwanted) writer_.free(unwanted);
  }

  // What nobody asked for, if it is that.
  WrittenTensor product_backward(OpId before, Product product) {
    product.before = before;
    const StorageId result = before == kNoOp ? kNoStorage : written_by(before);
    if (before != kNoOp) {
      remove_alloc(result);
      edit_.remove(before);
    }
    const WrittenTensor made = scaled_mm(product, result);
    return before == kNoOp ? made : WrittenTensor();
  }

  const Trace& t_;
  const LinearLayers found_;
  const Dataflow& flow_;
  const bool says_saved_;  // does the step say what autograd keeps? A generated one does not
  TraceEdit edit_;
  ProgramWriter writer_;
};

}  // namespace

std::string fp8_obstacle(const Trace& trace) { return LinearLayers(trace).obstacle(); }

Trace with_fp8_layers(const Trace& trace, const Machine& machine, const Pricer& pricer) {
  if (const std::string why = fp8_obstacle(trace); !why.empty())
    throw UsageError(fmt::format("Policy 'precision' has no meaning for trace '{}': of fp8, {}", trace.name, why));
  return Fp8Writer(trace, machine, pricer).apply();
}

}  // namespace memwall
