// Products of matrices, and attention.
#include <fmt/format.h>

#include <cassert>

#include "models/workload/flops.h"
#include "models/workload/generate/operators/operators.h"
#include "models/workload/generate/operators/operators_product.h"
#include "sim/error.h"

namespace memwall {
namespace {

// Rows that fold into one dimension are multiplied where they lie, as a slice of the columns is (at::matmul); what does
// not is copied.
Tensor with_folded_rows(Tape& t, const Tensor& x) {
  Shape folded;
  const std::int64_t k = x.shape.back();
  const bool folds = k > 0 && x.strides.back() == 1 && view_strides(x, {x.elements() / k, k}, folded);
  return folds ? x : contiguous(t, x);
}

// Gradients of x [rows, k], weight [n, k] and bias [n]. AddmmBackward asks for that of its first factor first,
// MmBackward for that of its second: the order of the names in derivatives.yaml.
Tensors linear_backward(Tape& t, GradientFunction& node, Tensor& given, const Shape& x_shape) {
  const Tensor g = with_folded_rows(t, given);
  if (g.storage != given.storage) given.reset();  // what folds the rows is a node of its own (ViewBackward)
  const bool has_bias = node.edges.size() == 3;
  const std::size_t x_edge = has_bias ? 1 : 0, weight_edge = x_edge + 1;  // addmm's first argument is the bias
  const Tensor x = node.take_saved(t, has_bias ? 0 : 1), weight = node.take_saved(t, has_bias ? 1 : 0);
  const std::int64_t n = g.shape.back(), rows = g.elements() / n, k = x_shape.back();
  Tensors gradients(node.edges.size());
  const auto of_x = [&] {
    if (!node.needs(x_edge)) return;
    t.count_calls(1);
    gradients[x_edge] = product(t, "aten::mm", {1, rows, k, n}, {&g, &weight}, x_shape, g.type);
  };
  const auto of_weight = [&] {
    if (!node.needs(weight_edge)) return;
    t.count_calls(2);
    gradients[weight_edge] = product(t, "aten::mm", {1, n, k, rows}, {&g, &x}, {n, k}, g.type);
  };
  if (has_bias) {
    of_x();
    of_weight();
    if (node.needs(0)) gradients[0] = sum_to(t, reshape(t, g, {rows, n}), {n});
  } else {
    of_weight();
    of_x();
  }
  return gradients;
}

void require_fused(const Tensor& q) {
  if (q.shape.back() % 8 == 0 && q.shape.back() <= 256) return;
  throw UsageError(
      fmt::format("Fused attention with heads of {} elements is not implemented; expected a multiple of 8 "
                  "up to 256. Choose `attention: plain`.",
                  q.shape.back()));
}

// As PyTorch calls it; programs that bring a kernel of their own save the same.
std::string_view operator_name(AttentionKernel kernel) {
  if (kernel == AttentionKernel::cudnn) return "aten::_scaled_dot_product_cudnn_attention";
  if (kernel == AttentionKernel::memory_efficient) return "aten::_scaled_dot_product_efficient_attention";
  return "aten::_scaled_dot_product_flash_attention";
}

std::string_view backward_name(AttentionKernel kernel) {
  if (kernel == AttentionKernel::cudnn) return "aten::_scaled_dot_product_cudnn_attention_backward";
  if (kernel == AttentionKernel::memory_efficient) return "aten::_scaled_dot_product_efficient_attention_backward";
  return "aten::_scaled_dot_product_flash_attention_backward";
}

struct FusedAttention {
  bool causal;
  AttentionKernel kernel;
};

// What PyTorch's operators keep beside the result: the sum of exponentials of each row, by the memory-efficient kernel of
// 32 rows together (kAlignLSE); two numbers of the random generator, FlashAttention's first is a pair.
Shape sums_shape(const Tensor& q, AttentionKernel kernel) {
  constexpr std::int64_t kRows = 32;
  const std::int64_t rows = q.shape[2];
  return {q.shape[0], q.shape[1], kernel == AttentionKernel::memory_efficient ? (rows + kRows - 1) / kRows * kRows : rows};
}

Shape seed_shape(AttentionKernel kernel) {
  const bool single = kernel == AttentionKernel::memory_efficient || kernel == AttentionKernel::cudnn;
  return single ? Shape{} : Shape{2};
}

TapeKernel attention_work(std::string_view name, const Tensor& q, const Tensor& k, FusedAttention how) {
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::attention;
  work.type = q.type;
  work.shape = with_attention_kernel(
      {q.shape[0], q.shape[1], k.shape[1], q.shape[2], k.shape[2], q.shape[3], how.causal ? 1 : 0}, how.kernel);
  return work;
}

Tensors fused_backward(Tape& t, GradientFunction& node, const Tensor& gradient, FusedAttention how) {
  const Tensor k = node.take_saved(t, 0), q = node.take_saved(t, 1), v = node.take_saved(t, 2);
  const Tensor sums = node.take_saved(t, 3), out = node.take_saved(t, 4);
  const Tensor seed = node.take_saved(t, 5), unused = node.take_saved(t, 6);
  const std::string_view name = backward_name(how.kernel);
  Tensors result;
  for (const Tensor* x : {&q, &k, &v}) result.push_back(t.make(name, x->shape, x->type, strides_like(x->shape, *x)));
  TapeKernel work = attention_work(name, q, k, how);
  work.flops = attention_backward_flops(static_cast<double>(q.shape[0] * q.shape[1]), static_cast<double>(q.shape[2]),
                                        static_cast<double>(k.shape[2]), static_cast<double>(q.shape[3]),
                                        static_cast<double>(v.shape[3]));
  t.kernel(work, {&gradient, &q, &k, &v, &out, &sums, &seed, &unused}, {&result[0], &result[1], &result[2]});
  return result;
}

}  // namespace

Tensor linear(Tape& tape, const Tensor& x_given, const Tensor& weight_given, const Tensor& bias_given) {
  // Arguments are cast from the last to the first, as C++ compilers evaluate autocast's call.
  const Tensor bias = autocast_low(tape, bias_given), weight = autocast_low(tape, weight_given);
  const Tensor x = with_folded_rows(tape, autocast_low(tape, x_given));
  assert(x.shape.back() == weight.shape[1]);
  const Tensor saved_x = weight.requires_gradient() ? x : Tensor();
  const Tensor saved_weight = x.requires_gradient() ? weight : Tensor();
  const auto backward = [shape = x.shape](Tape& t, GradientFunction& node, Tensors& g) {
    return linear_backward(t, node, g[0], shape);
  };
  Tape::Function f = bias ? tape.record({&bias, &x, &weight}, {saved_x, saved_weight}, backward)
                          : tape.record({&x, &weight}, {saved_weight, saved_x}, backward);
  Shape shape = x.shape;
  const std::int64_t k = shape.back(), n = weight.shape[0], rows = k == 0 ? 0 : x.elements() / k;
  shape.back() = n;
  tape.count_calls(x.dimensions() > 2 ? 3 : 1);  // t, and the views before and after
  Tensor y = bias ? product(tape, "aten::addmm", {1, rows, n, k}, {&bias, &x, &weight}, shape, x.type)
                  : product(tape, "aten::mm", {1, rows, n, k}, {&x, &weight}, shape, x.type);
  Tape::result(f, y);
  return y;
}

Tensor bmm(Tape& tape, const Tensor& a_given, const Tensor& b_given) {
  const Tensor b = autocast_low(tape, b_given), a = autocast_low(tape, a_given);
  const std::int64_t batch = a.shape[0], m = a.shape[1], k = a.shape[2], n = b.shape[2];
  auto f = tape.record(
      {&a, &b}, {a.requires_gradient() ? b : Tensor(), b.requires_gradient() ? a : Tensor()},
      [=](Tape& t, GradientFunction& node, Tensors& g) {
        const Tensor other = node.take_saved(t, 0), self = node.take_saved(t, 1);
        Tensors gradients(2);
        t.count_calls(1);
        if (node.needs(1))
          gradients[1] = product(t, "aten::bmm", {batch, k, n, m}, {&self, &g[0]}, {batch, k, n}, g[0].type);
        t.count_calls(1);
        if (node.needs(0))
          gradients[0] = product(t, "aten::bmm", {batch, m, k, n}, {&g[0], &other}, {batch, m, k}, g[0].type);
        return gradients;
      });
  Tensor y = product(tape, "aten::bmm", {batch, m, n, k}, {&a, &b}, {batch, m, n}, a.type);
  Tape::result(f, y);
  return y;
}

// Batch and heads become one dimension, by a copy where the strides do not allow a view.
Tensor batched_matmul(Tape& tape, const Tensor& a_given, const Tensor& b_given) {
  const Tensor b = autocast_low(tape, b_given), a = autocast_low(tape, a_given);
  const std::int64_t batch = a.shape[0], heads = a.shape[1], m = a.shape[2], k = a.shape[3], n = b.shape[3];
  tape.count_calls(2);  // expand
  const Tensor left = reshape(tape, a, {batch * heads, m, k});
  const Tensor right = reshape(tape, b, {batch * heads, k, n});
  return reshape(tape, bmm(tape, left, right), {batch, heads, m, n});
}

Tensor fused_attention(Tape& tape, const Tensor& q_given, const Tensor& k_given, const Tensor& v_given, bool causal,
                       AttentionKernel kernel) {
  require_fused(q_given);
  const FusedAttention how{causal, kernel};
  const Tensor v = autocast_low(tape, v_given), k = autocast_low(tape, k_given), q = autocast_low(tape, q_given);
  auto f = tape.record({&q, &k, &v}, {k, q, v}, [how](Tape& t, GradientFunction& node, Tensors& g) {
    return fused_backward(t, node, g[0], how);
  });
  const std::string_view name = operator_name(kernel);
  Tensor out = tape.make(name, q.shape, q.type, strides_like(q.shape, q));
  const Tensor sums = tape.make(name, sums_shape(q, kernel), DataType::fp32);
  const Tensor seed = tape.make(name, seed_shape(kernel), DataType::int64), unused = tape.make(name, {}, DataType::int64);
  TapeKernel work = attention_work(name, q, k, how);
  work.flops = attention_flops(static_cast<double>(q.shape[0] * q.shape[1]), static_cast<double>(q.shape[2]),
                               static_cast<double>(k.shape[2]), static_cast<double>(q.shape[3]),
                               static_cast<double>(v.shape[3]));
  tape.kernel(work, {&q, &k, &v}, {&out, &sums, &seed, &unused});
  Tape::result(f, out);
  for (const Tensor* saved : {&sums, static_cast<const Tensor*>(&out), &seed, &unused}) tape.save(f, *saved);
  return out;
}

}  // namespace memwall
