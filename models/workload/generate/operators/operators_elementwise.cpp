// Elementwise operators and reductions. An elementwise operator counts one FLOP per element of its result.
#include <cassert>
#include <utility>

#include "models/workload/generate/operators/operators.h"

namespace memwall {
namespace {

DataType wider(DataType a, DataType b) { return bytes_of(a) >= bytes_of(b) ? a : b; }

DataType type_of(std::initializer_list<const Tensor*> reads, DataType otherwise) {
  for (const Tensor* t : reads)
    if (*t && t->type != DataType::int64 && t->type != DataType::boolean) return t->type;
  return otherwise;
}

// A kernel of an elementwise operator with a result like `like`.
Tensor same(Tape& tape, std::string_view name, std::initializer_list<const Tensor*> reads, const Tensor& like) {
  Tensor y = tape.make(name, like.shape, like.type, strides_like(like.shape, like));
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::elementwise;
  work.type = type_of(reads, y.type);
  work.flops = static_cast<double>(y.elements());
  work.shape = {y.elements()};
  tape.kernel(work, reads, {&y});
  return y;
}

Tensor binary(Tape& tape, std::string_view name, const Tensor& a, const Tensor& b) {
  Tensor like;
  like.shape = broadcast(a.shape, b.shape);
  like.strides = strides_like(like.shape, a.shape == like.shape ? a : b);
  like.type = wider(a.type, b.type);
  return same(tape, name, {&a, &b}, like);
}

// An operator of one tensor whose backward is one kernel of the gradient and a saved tensor.
Tensor unary(Tape& tape, std::string_view name, std::string_view backward_name, const Tensor& x, bool save_result) {
  auto f = tape.record({&x}, save_result ? Tensors{} : Tensors{x},
                       [backward_name](Tape& t, GradientFunction& node, Tensors& g) {
                         const Tensor saved = node.take_saved(t, 0);
                         return Tensors{same(t, backward_name, {&g[0], &saved}, g[0])};
                       });
  Tensor y = same(tape, name, {&x}, x);
  Tape::result(f, y);
  if (save_result) tape.save(f, y);
  return y;
}

// An operator with a number: its gradient is scaled by `backward_name`, or goes on as it is.
Tensor with_number(Tape& tape, std::string_view name, std::string_view backward_name, const Tensor& x) {
  auto f = tape.record({&x}, {}, [backward_name](Tape& t, GradientFunction&, Tensors& g) {
    return Tensors{backward_name.empty() ? g[0] : same(t, backward_name, {&g[0]}, g[0])};
  });
  Tensor y = same(tape, name, {&x}, x);
  Tape::result(f, y);
  return y;
}

Tensor reduce(Tape& tape, std::string_view name, const Tensor& x, const Shape& shape, DataType type) {
  Tensor y = tape.make(name, shape, type);
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::reduction;
  work.type = x.type;
  work.flops = static_cast<double>(x.elements());
  const std::int64_t results = y.elements();
  work.shape = {results, results == 0 ? 0 : x.elements() / results};
  tape.kernel(work, {&x}, {&y});
  return y;
}

Tensor softmax_kernel(Tape& tape, std::string_view name, double per_element, std::initializer_list<const Tensor*> reads,
                      const Tensor& like) {
  Tensor y = tape.make(name, like.shape, like.type);
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::reduction;
  work.type = like.type;
  work.flops = per_element * static_cast<double>(like.elements());
  work.shape = {like.elements() / like.shape.back(), like.shape.back()};
  tape.kernel(work, reads, {&y});
  return y;
}

Tensor softmax_like(Tape& tape, std::string_view name, std::string_view backward_name, const Tensor& x) {
  auto f = tape.record({&x}, {}, [backward_name](Tape& t, GradientFunction& node, Tensors& g) {
    const Tensor y = node.take_saved(t, 0);
    return Tensors{softmax_kernel(t, backward_name, 4, {&g[0], &y}, g[0])};
  });
  Tensor y = softmax_kernel(tape, name, 5, {&x}, x);
  Tape::result(f, y);
  tape.save(f, y);
  return y;
}

// tanh(c x (1 + a x^2))
Tensor tanh_of_gelu(Tape& t, const Tensor& x) {
  const auto product = [&](const Tensor& a, const Tensor& b) { return same(t, "aten::mul", {&a, &b}, a); };
  Tensor scaled = same(t, "aten::mul", {&x}, x);
  Tensor inside = same(t, "aten::mul", {&x}, x);
  inside = product(inside, x);
  inside = same(t, "aten::add", {&inside}, x);
  Tensor both = product(scaled, inside);
  scaled.reset();
  inside = std::move(both);
  return same(t, "aten::tanh", {&inside}, x);
}

// bloom_gelu_back of transformers/models/bloom/modeling_bloom.py.
Tensor gelu_tanh_backward(Tape& t, const Tensor& g, const Tensor& x) {
  const auto product = [&](const Tensor& a, const Tensor& b) { return same(t, "aten::mul", {&a, &b}, a); };
  const Tensor result = tanh_of_gelu(t, x);
  Tensor sum;
  {
    const Tensor half = same(t, "aten::mul", {&x}, x);
    Tensor slope = product(result, result);
    slope = same(t, "aten::rsub", {&slope}, x);
    Tensor inner = same(t, "aten::mul", {&x}, x);
    inner = product(inner, x);
    inner = same(t, "aten::add", {&inner}, x);
    slope = product(slope, inner);
    inner.reset();
    sum = product(half, slope);
  }
  Tensor rest = same(t, "aten::add", {&result}, x);
  rest = same(t, "aten::mul", {&rest}, x);
  sum = same(t, "aten::add", {&sum, &rest}, x);
  rest.reset();
  return product(sum, g);
}

}  // namespace

Tensor elementwise(Tape& tape, std::string_view name, std::initializer_list<const Tensor*> reads, const Shape& shape,
                   DataType type) {
  Tensor like;
  like.shape = shape;
  like.strides = contiguous_strides(shape);
  like.type = type;
  return same(tape, name, reads, like);
}

Tensor add(Tape& tape, const Tensor& a, const Tensor& b) {
  auto f = tape.record({&a, &b}, {}, [](Tape&, GradientFunction& node, Tensors& g) {
    return Tensors{node.needs(0) ? g[0] : Tensor(), node.needs(1) ? g[0] : Tensor()};
  });
  Tensor y = binary(tape, "aten::add", a, b);
  Tape::result(f, y);
  return y;
}

Tensor sub(Tape& tape, const Tensor& a, const Tensor& b) {
  auto f = tape.record({&a, &b}, {}, [](Tape& t, GradientFunction& node, Tensors& g) {
    Tensors gradients(2);
    if (node.needs(1)) gradients[1] = same(t, "aten::neg", {&g[0]}, g[0]);
    if (node.needs(0)) gradients[0] = g[0];
    return gradients;
  });
  Tensor y = binary(tape, "aten::sub", a, b);
  Tape::result(f, y);
  return y;
}

Tensor mul(Tape& tape, const Tensor& a, const Tensor& b) {
  auto f = tape.record({&a, &b}, {a.requires_gradient() ? b : Tensor(), b.requires_gradient() ? a : Tensor()},
                       [](Tape& t, GradientFunction& node, Tensors& g) {
                         Tensors gradients(2);
                         const Tensor other = node.take_saved(t, 0), self = node.take_saved(t, 1);
                         if (node.needs(1)) gradients[1] = binary(t, "aten::mul", g[0], self);
                         if (node.needs(0)) gradients[0] = binary(t, "aten::mul", g[0], other);
                         return gradients;
                       });
  Tensor y = binary(tape, "aten::mul", a, b);
  Tape::result(f, y);
  return y;
}

void add_in_place(Tape& tape, const Tensor& a, const Tensor& b) {
  TapeKernel work;
  work.name = "aten::add_";
  work.operator_class = OperatorClass::elementwise;
  work.type = a.type;
  work.flops = static_cast<double>(a.elements());
  work.shape = {a.elements()};
  tape.kernel(work, {&a, &b}, {&a});
}

Tensor add_number(Tape& tape, const Tensor& x) { return with_number(tape, "aten::add", "", x); }
Tensor mul_number(Tape& tape, const Tensor& x) { return with_number(tape, "aten::mul", "aten::mul", x); }
Tensor div_number(Tape& tape, const Tensor& x) { return with_number(tape, "aten::div", "aten::div", x); }
Tensor neg(Tape& tape, const Tensor& x) { return with_number(tape, "aten::neg", "aten::neg", x); }

Tensor masked_fill(Tape& tape, const Tensor& x, const Tensor& mask) {
  auto f = tape.record({&x}, {mask}, [](Tape& t, GradientFunction& node, Tensors& g) {
    const Tensor where = node.take_saved(t, 0);
    return Tensors{same(t, "aten::masked_fill", {&g[0], &where}, g[0])};
  });
  Tensor y = same(tape, "aten::masked_fill", {&x, &mask}, x);
  Tape::result(f, y);
  return y;
}

// grad * (2 * x.pow(1)), as derivatives.yaml has it for any exponent.
Tensor square(Tape& tape, const Tensor& x) {
  auto f = tape.record({&x}, {x}, [](Tape& t, GradientFunction& node, Tensors& g) {
    const Tensor saved = node.take_saved(t, 0);
    const Tensor power = same(t, "aten::pow", {&saved}, saved);
    const Tensor scaled = same(t, "aten::mul", {&power}, power);
    return Tensors{binary(t, "aten::mul", g[0], scaled)};
  });
  Tensor y = same(tape, "aten::pow", {&x}, x);
  Tape::result(f, y);
  return y;
}

// -0.5 * grad * result.pow(3)
Tensor rsqrt(Tape& tape, const Tensor& x) {
  auto f = tape.record({&x}, {}, [](Tape& t, GradientFunction& node, Tensors& g) {
    const Tensor saved = node.take_saved(t, 0);
    const Tensor power = same(t, "aten::pow", {&saved}, saved);
    const Tensor scaled = same(t, "aten::mul", {&g[0]}, g[0]);
    return Tensors{binary(t, "aten::mul", scaled, power)};
  });
  Tensor y = same(tape, "aten::rsqrt", {&x}, x);
  Tape::result(f, y);
  tape.save(f, y);
  return y;
}

Tensor silu(Tape& tape, const Tensor& x) { return unary(tape, "aten::silu", "aten::silu_backward", x, false); }
Tensor gelu(Tape& tape, const Tensor& x) { return unary(tape, "aten::gelu", "aten::gelu_backward", x, false); }
Tensor relu(Tape& tape, const Tensor& x) { return unary(tape, "aten::relu", "aten::threshold_backward", x, true); }

Tensor tanh(Tape& tape, const Tensor& x) { return unary(tape, "aten::tanh", "aten::tanh_backward", x, true); }

Tensor softcapped(Tape& tape, Tensor x) {
  x = div_number(tape, x);
  x = tanh(tape, x);
  return mul_number(tape, x);
}

Tensor gelu_tanh_in_parts(Tape& tape, const Tensor& x) {
  const Tensor half = mul_number(tape, x);
  Tensor inside = square(tape, autocast_fp32(tape, x));  // pow(3.0): the same kernels forward and backward
  inside = mul_number(tape, inside);
  inside = add(tape, x, inside);
  inside = mul_number(tape, inside);
  inside = tanh(tape, inside);
  inside = add_number(tape, inside);
  return mul(tape, half, inside);
}

Tensor gelu_tanh_recomputed(Tape& tape, const Tensor& x) {
  auto f = tape.record({&x}, {x}, [](Tape& t, GradientFunction& node, Tensors& g) {
    const Tensor saved = node.take_saved(t, 0);
    return Tensors{gelu_tanh_backward(t, g[0], saved)};
  });
  const NoGradientScope no_gradient(tape);
  const Tensor half = same(tape, "aten::mul", {&x}, x);
  Tensor y = tanh_of_gelu(tape, x);
  y = same(tape, "aten::add", {&y}, x);
  y = same(tape, "aten::mul", {&half, &y}, x);
  Tape::result(f, y);
  return y;
}

Tensor dropout(Tape& tape, const Tensor& x, double probability) {
  if (probability == 0) return x;
  auto f = tape.record({&x}, {}, [](Tape& t, GradientFunction& node, Tensors& g) {
    const Tensor mask = node.take_saved(t, 0);
    return Tensors{same(t, "aten::native_dropout_backward", {&g[0], &mask}, g[0])};
  });
  Tensor y = tape.make("aten::native_dropout", x.shape, x.type, strides_like(x.shape, x));
  Tensor mask = tape.make("aten::native_dropout", x.shape, DataType::boolean, strides_like(x.shape, x));
  TapeKernel work;
  work.name = "aten::native_dropout";
  work.operator_class = OperatorClass::elementwise;
  work.type = x.type;
  work.flops = static_cast<double>(x.elements());
  work.shape = {x.elements()};
  tape.kernel(work, {&x}, {&y, &mask});
  Tape::result(f, y);
  tape.save(f, mask);
  return y;
}

Tensor sum_to(Tape& tape, const Tensor& x, const Shape& shape) {
  Shape kept = x.shape;
  const std::size_t shift = x.shape.size() - shape.size();
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (i < shift || shape[i - shift] == 1) kept[i] = 1;
  Tensor y = reduce(tape, "aten::sum", x, kept, x.type);
  return shift == 0 ? y : tape.view(y, shape, contiguous_strides(shape));
}

// The gradient is spread over the row and divided.
Tensor mean_of_rows(Tape& tape, const Tensor& x) {
  auto f = tape.record({&x}, {}, [shape = x.shape](Tape& t, GradientFunction&, Tensors& g) {
    const Tensor spread = expand(t, g[0], shape);
    Tensor like = spread;
    like.strides = contiguous_strides(shape);
    return Tensors{same(t, "aten::div", {&spread}, like)};
  });
  Shape shape = x.shape;
  shape.back() = 1;
  Tensor y = reduce(tape, "aten::mean", x, shape, x.type);
  Tape::result(f, y);
  return y;
}

Tensor softmax(Tape& tape, const Tensor& x) {
  return softmax_like(tape, "aten::_softmax", "aten::_softmax_backward_data", x);
}

Tensor log_softmax(Tape& tape, const Tensor& x) {
  return softmax_like(tape, "aten::_log_softmax", "aten::_log_softmax_backward_data", x);
}

}  // namespace memwall
