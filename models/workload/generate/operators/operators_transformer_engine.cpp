#include "models/workload/generate/operators/operators_transformer_engine.h"

#include <fmt/format.h>

#include <utility>

#include "models/workload/generate/operators/fp8_quantization.h"
#include "models/workload/generate/operators/kernel_work.h"
#include "models/workload/generate/operators/operators_product.h"
#include "models/workload/generate/operators/overlapped_product.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr std::string_view kProduct = "transformer_engine::fp8_gemm";

void require_multiples(std::int64_t rows, std::int64_t n, std::int64_t k) {
  if (rows % 16 == 0 && n % 16 == 0 && k % 16 == 0) return;
  throw UsageError(fmt::format(
      "`precision: fp8_transformer_engine`: a product of {} x {} with {} x {}; expected multiples of 16, as "
      "its kernels do (tokens of all sequences, widths of a rank).",
      rows, k, k, n));
}

bool by_tokens(const TransformerEngine& engine) { return engine.parallel && engine.parallel->by_tokens(); }
bool is_shared(const TransformerEngine& engine) { return engine.parallel && engine.parallel->group.ranks() > 1; }
// Products and messages in pieces.
bool overlaps(const TransformerEngine& engine) { return engine.parallel && engine.parallel->overlaps(); }

Communicator* group_of(const TransformerEngine& engine) { return &engine.parallel->group; }

// The weight as forward reads it and, of one in bf16, as backward does. Where it is kept it is made in the first pass.
Fp8Parts weight_in_fp8(Tape& tape, const TransformerEngine& engine, Fp8Weight& weight) {
  if (weight.parameter->value.type == DataType::fp8) return {weight.parameter->value.detached(), {}};
  const Fp8Parts kept{weight.values, weight.transposed};
  if (weight.made) return kept;
  weight.made = engine.weight_cache;
  return quantize(tape, engine.recipe, weight.parameter->value, {true, true}, nullptr, kept);
}

// A parameter in fp8 is transposed by the backward pass that needs it.
Tensor weight_transposed(Tape& tape, const TransformerEngine& engine, Fp8Weight& weight, const Fp8Parts& parts) {
  if (parts.columns) return parts.columns;
  if (weight.made) return weight.transposed;
  weight.made = engine.weight_cache;
  return transposed_copy(tape, parts.rows, weight.transposed);
}

// Rows times [n, k]: [.., n] in bf16.
Tensor multiply(Tape& tape, const Tensor& rows, const Tensor& factor, const Tensor& bias) {
  const auto [m, k] = rows_of(rows);
  const std::int64_t n = factor.shape[0];
  require_multiples(m, n, k);
  Shape shape = rows.shape;
  shape.back() = n;
  Tensor y = tape.make(kProduct, shape, DataType::bf16);
  tape.kernel(product_work(kProduct, DataType::fp8, m, n, k), {&rows, &factor, &bias}, {&y});
  return y;
}

Tensor gathered_product(Tape& tape, const TransformerEngine& engine, const Tensor& own, const Tensor& factor,
                        const Tensor& bias, Tensor& whole) {
  TensorParallel& parallel = *engine.parallel;
  whole = tape.make("c10d::_allgather_base_", parallel.group.gathered(own.shape), DataType::fp8);
  if (!parallel.overlaps()) {
    parallel.group.start_all_gather(own, whole);
    parallel.group.wait();
    return multiply(tape, whole, factor, bias);
  }
  const auto [m, k] = rows_of(whole);
  const std::int64_t n = factor.shape[0];
  require_multiples(m, n, k);
  Shape shape = whole.shape;
  shape.back() = n;
  Tensor y = tape.make(kProduct, shape, DataType::bf16);
  gather_beside_product(tape, parallel, own, whole, {kProduct, DataType::fp8, n, k, factor, bias}, y);
  return y;
}

// Its sum over ranks.
Tensor summed_product(Tape& tape, const TransformerEngine& engine, const Tensor& rows, const Tensor& factor) {
  if (overlaps(engine)) {
    const auto [m, k] = rows_of(rows);
    const std::int64_t n = factor.shape[0];
    require_multiples(m, n, k);
    Shape shape = rows.shape;
    shape.back() = n;
    const Tensor sums = tape.make(kProduct, shape, DataType::bf16);
    return scatter_beside_product(tape, *engine.parallel, rows, {kProduct, DataType::fp8, n, k, factor, {}}, sums);
  }
  Tensor y = multiply(tape, rows, factor, {});
  if (by_tokens(engine)) return engine.parallel->group.reduce_scatter(y);
  if (is_shared(engine)) engine.parallel->group.all_reduce(y);
  return y;
}

// [n, k] of gradients [n, rows] and inputs [k, rows], both transposed. Where the parameter adds up in a buffer, into
// that.
Tensor fp8_weight_gradient(Tape& t, const GradientFunction::Edge& edge, const Tensor& g, const Tensor& x) {
  const std::int64_t n = g.shape[0], k = x.shape[0], rows = g.shape[1];
  const Parameter* leaf = edge.function->leaf;
  TapeKernel work = product_work("transformer_engine::fp8_wgrad_gemm", DataType::fp8, n, k, rows);
  if (leaf && leaf->products_add_up && leaf->main_gradient) {
    t.kernel(work, {&g, &x, &leaf->main_gradient}, {&leaf->main_gradient});
    return {};
  }
  Tensor gradient = t.make(work.name, {n, k}, DataType::bf16);
  t.kernel(work, {&g, &x}, {&gradient});
  return gradient;
}

// What a layer's node keeps.
struct LayerNode {
  const TransformerEngine& engine;
  Fp8Weight& weight;
  Fp8Split split;
  Fp8Parts values;  // of the weight
};

// The gradient of the results, as both products read it; of all tokens.
Fp8Parts quantized_gradient(Tape& t, const LayerNode& layer, const Tensor& given, bool transposed) {
  const bool gathers = layer.split == Fp8Split::row && by_tokens(layer.engine);
  return quantize(t, layer.engine.recipe, given, {true, transposed && !gathers},
                  gathers ? group_of(layer.engine) : nullptr, {});
}

Tensors row_backward(Tape& t, const LayerNode& layer, GradientFunction& node, const Tensor& g) {
  const TransformerEngine& engine = layer.engine;
  const Tensor x = node.needs(1) ? node.take_saved(t, 0) : Tensor();
  Fp8Parts gradient = quantized_gradient(t, layer, g, node.needs(1));
  const Tensor weight = weight_transposed(t, engine, layer.weight, layer.values);
  Tensors gradients(node.edges.size());
  if (by_tokens(engine)) {
    const Tensor own = std::move(gradient.rows);
    gradients[0] = gathered_product(t, engine, own, weight, {}, gradient.rows);
    if (node.needs(1)) gradient.columns = transposed_copy(t, gradient.rows, {});
  } else if (node.needs(0)) {
    gradients[0] = multiply(t, gradient.rows, weight, {});
  }
  if (node.needs(1)) gradients[1] = fp8_weight_gradient(t, node.edges[1], gradient.columns, x);
  return gradients;
}

// The input is gathered again beside the product of its gradient, which is reduced beside that of the weight's.
Tensors column_backward(Tape& t, const LayerNode& layer, GradientFunction& node, const Tensor& g) {
  const TransformerEngine& engine = layer.engine;
  const Tensor saved = node.needs(1) ? node.take_saved(t, 0) : Tensor();
  const Fp8Parts gradient = quantized_gradient(t, layer, g, node.needs(1));
  const Tensor weight = node.needs(0) ? weight_transposed(t, engine, layer.weight, layer.values) : Tensor();
  Tensors gradients(node.edges.size());
  const bool shared = is_shared(engine), gathers = by_tokens(engine) && node.needs(1);
  Tensor whole;
  if (gathers) {
    whole = t.make("c10d::_allgather_base_", engine.parallel->group.gathered(saved.shape), DataType::fp8);
    engine.parallel->group.start_all_gather(saved, whole);
  }
  if (node.needs(0)) gradients[0] = multiply(t, gradient.rows, weight, {});
  if (gathers) engine.parallel->group.wait();
  Tensor summed;  // held until the reduction has been waited for
  if (node.needs(0) && by_tokens(engine))
    gradients[0] = engine.parallel->group.start_reduce_scatter(summed = std::move(gradients[0]));
  else if (node.needs(0) && shared)
    engine.parallel->group.start_all_reduce(gradients[0]);
  if (node.needs(1))
    gradients[1] = fp8_weight_gradient(t, node.edges[1], gradient.columns, gathers ? transposed_copy(t, whole, {}) : saved);
  if (node.needs(0) && shared) engine.parallel->group.wait();
  return gradients;
}

Tensors layer_backward(Tape& t, const LayerNode& layer, GradientFunction& node, const Tensor& given) {
  const NoGradientScope no_gradient(t);
  const Tensor g = contiguous(t, given);
  Tensors gradients =
      layer.split == Fp8Split::row ? row_backward(t, layer, node, g) : column_backward(t, layer, node, g);
  if (node.edges.size() == 3 && node.needs(2)) {
    const auto [rows, n] = rows_of(g);
    gradients[2] = sum_to(t, t.view(g, {rows, n}, {n, 1}), {n});
  }
  return gradients;
}

// The input in fp8. `transposed`: what backward multiplies, which a rank's own tokens are not.
Fp8Parts quantized_input(Tape& tape, const TransformerEngine& engine, Fp8Split split, const Tensor& x,
                         bool transposed) {
  const bool gathers = split == Fp8Split::column && by_tokens(engine);
  if (x.type == DataType::fp8) return {x.detached(), transposed && !gathers ? transposed_copy(tape, x, {}) : Tensor()};
  return quantize(tape, engine.recipe, x, {true, transposed && !gathers}, gathers ? group_of(engine) : nullptr, {});
}

}  // namespace

Fp8Weight make_fp8_weight(Tape& tape, const TransformerEngine& engine, const std::string& name,
                          const Parameter& parameter) {
  Fp8Weight weight{&parameter, {}, {}, false};
  if (!engine.weight_cache) return weight;
  const Shape& shape = parameter.value.shape;
  const auto keep = [&](const char* what, const Shape& kept) {
    return tape.permanent(fmt::format("{}.{}", name, what), kept, DataType::fp8, StorageKind::parameter);
  };
  if (parameter.value.type != DataType::fp8) weight.values = keep("fp8", shape);
  weight.transposed = keep("fp8_transposed", {shape[1], shape[0]});
  return weight;
}

Tensor fp8_linear(Tape& tape, const TransformerEngine& engine, Fp8Weight& weight, Fp8Split split, const Tensor& x_given,
                  const Tensor& bias) {
  const Tensor x = contiguous(tape, x_given);
  const bool trained = tape.gradients_enabled && weight.parameter->value.requires_gradient();
  const auto layer = std::make_shared<LayerNode>(LayerNode{engine, weight, split, {}});
  const auto backward = [layer](Tape& t, GradientFunction& node, Tensors& g) {
    return layer_backward(t, *layer, node, g[0]);
  };
  Tape::Function f = bias ? tape.record({&x, &weight.parameter->value, &bias}, {}, backward)
                          : tape.record({&x, &weight.parameter->value}, {}, backward);
  Tensor y;
  Fp8Parts input;
  {
    const NoGradientScope no_gradient(tape);
    layer->values = weight_in_fp8(tape, engine, weight);
    const Tensor& values = layer->values.rows;
    input = quantized_input(tape, engine, split, x, trained);
    Tensor whole;
    if (split == Fp8Split::column && by_tokens(engine))
      y = gathered_product(tape, engine, input.rows, values, bias, whole);
    else if (split == Fp8Split::row)
      y = summed_product(tape, engine, input.rows, values);
    else
      y = multiply(tape, input.rows, values, bias);
  }
  Tape::result(f, y);
  const bool own_tokens = split == Fp8Split::column && by_tokens(engine);
  if (f && trained) tape.save(f, own_tokens ? input.rows : input.columns);
  return y;
}

}  // namespace memwall
