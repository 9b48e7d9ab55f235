#include "models/workload/generate/operators/operators_liger.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "models/workload/flops.h"
#include "models/workload/generate/operators/kernel_work.h"
#include "models/workload/generate/operators/operators.h"

namespace memwall {
namespace {

struct PieceShape {
  std::int64_t rows, vocabulary, width;
};

void product(Tape& tape, std::string_view name, DataType type, const Shape& extents,
             std::initializer_list<const Tensor*> reads, const Tensor& into) {
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::gemm;
  work.type = type;
  work.flops =
      gemm_flops(static_cast<double>(extents[0]), static_cast<double>(extents[1]), static_cast<double>(extents[2]), 1);
  work.shape = {1, extents[0], extents[1], extents[2]};
  const auto elements = extents[0] * extents[2] + extents[2] * extents[1] + extents[0] * extents[1];
  work.bytes = elements * bytes_of(type);
  tape.kernel(work, reads, {&into});
}

// grad_input[start:end] = part
void move_rows(Tape& tape, const Tensor& part, const Tensor& into) {
  TapeKernel work;
  work.name = "aten::copy_";
  work.operator_class = OperatorClass::memory;
  work.type = part.type;
  work.shape = {part.elements()};
  work.bytes = 2 * part.bytes();
  tape.kernel(work, {&part}, {&into});
}

// Two passes over the logits: the largest and the sum of a row, then its gradient in its place.
void loss_kernel(Tape& tape, const PieceShape& piece, const Tensor& logits, const Tensor& targets,
                 const Tensor& losses) {
  constexpr std::int64_t kPasses = 3;  // read, read, write
  TapeKernel work;
  work.name = "liger::cross_entropy";
  work.operator_class = OperatorClass::reduction;
  work.type = logits.type;
  work.flops = 8 * static_cast<double>(piece.rows) * static_cast<double>(piece.vocabulary);
  work.shape = {piece.rows, piece.vocabulary};
  work.bytes = piece.rows * (kPasses * piece.vocabulary * bytes_of(logits.type) + 8 + 4);
  tape.kernel(work, {&logits, &targets}, {&logits, &losses});
}

}  // namespace

std::int64_t fused_loss_rows(std::int64_t rows, std::int64_t vocabulary, std::int64_t width) {
  const std::int64_t pieces = (vocabulary + width - 1) / width;
  const auto least = static_cast<std::uint64_t>((rows + pieces - 1) / pieces);
  return std::min<std::int64_t>(rows, static_cast<std::int64_t>(std::bit_ceil(least)));
}

Tensor fused_linear_cross_entropy(Tape& tape, const Tensor& x_given, const Tensor& weight, const Tensor& targets) {
  const std::int64_t width = x_given.shape.back(), rows = x_given.elements() / width, vocabulary = weight.shape[0];
  const Tensor x = reshape(tape, x_given, {rows, width});
  const Tensor labels = reshape(tape, targets, {rows});
  const std::int64_t most = fused_loss_rows(rows, vocabulary, width);
  auto f = tape.record({&x, &weight}, {}, [](Tape& t, GradientFunction& node, Tensors& g) {
    read_on_host(t, elementwise(t, "aten::ne", {&g[0]}, {}, DataType::boolean));
    Tensors gradients{node.take_saved(t, 0), {}};
    if (node.needs(1)) gradients[1] = copy_of(t, node.take_saved(t, 1));
    return gradients;
  });
  Tensor of_x, of_weight, losses;
  {
    const NoGradientScope scope(tape);
    Tensor counted = elementwise(tape, "aten::ne", {&labels}, labels.shape, DataType::boolean);
    read_on_host(tape, elementwise(tape, "aten::sum", {&counted}, {}, DataType::int64));
    counted.reset();
    of_x = fill(tape, "aten::zeros_like", x.shape, x.type);
    if (weight.requires_gradient()) of_weight = fill(tape, "aten::zeros_like", weight.shape, weight.type);
    const auto add_to_weight = [&](const PieceShape& piece, const Tensor& logits) {
      Tensor part = tape.make("aten::mm", weight.shape, x.type);
      product(tape, "aten::mm", x.type, {vocabulary, width, piece.rows}, {&logits, &x}, part);
      Tensor wide = cast(tape, part, DataType::fp32);
      part.reset();
      add_in_place(tape, of_weight, wide);
    };
    losses = fill(tape, "aten::zeros", {rows}, DataType::fp32);
    Tensor logits;  // Python's variable: the next piece's are made before the last ones go
    for (std::int64_t done = 0; done < rows; done += most) {
      const PieceShape piece{std::min(most, rows - done), vocabulary, width};
      logits = tape.make("aten::mm", {piece.rows, vocabulary}, x.type);
      product(tape, "aten::mm", x.type, {piece.rows, vocabulary, width}, {&x, &weight}, logits);
      loss_kernel(tape, piece, logits, labels, losses);
      const Tensor part = tape.make("aten::mm", {piece.rows, width}, x.type);
      product(tape, "aten::mm", x.type, {piece.rows, width, vocabulary}, {&logits, &weight}, part);
      move_rows(tape, part, of_x);
      if (of_weight) add_to_weight(piece, logits);
    }
  }
  Tensor loss = tape.make("aten::sum", {}, DataType::fp32);
  tape.kernel(whole_reduction("aten::sum", DataType::fp32, rows), {&losses}, {&loss});
  Tape::result(f, loss);
  tape.save(f, of_x);
  if (of_weight) tape.save(f, of_weight);
  return loss;
}

Tensor rms_norm_liger(Tape& tape, const Tensor& x, const Tensor& weight) {
  auto f = tape.record({&x, &weight}, {x, weight}, [](Tape& t, GradientFunction& node, Tensors& g) {
    const Tensor gradient = contiguous(t, g[0]), saved = node.take_saved(t, 0), scale = node.take_saved(t, 1);
    const Tensor deviation = node.take_saved(t, 2);
    Tensors gradients{gradient, {}};
    Tensor rows;
    if (node.needs(1)) rows = t.make("aten::empty", {kRowsOfSums, scale.shape.back()}, DataType::fp32);
    t.kernel(normalization_work("liger::rms_norm_backward", saved, 10), {&gradient, &saved, &deviation, &scale},
             {&gradient, &rows});
    if (rows) gradients[1] = cast(t, sum_to(t, rows, scale.shape), scale.type);
    return gradients;
  });
  Tensor y = tape.make("liger::rms_norm", x.shape, x.type);
  const Tensor deviation = tape.make("liger::rms_norm", {x.elements() / x.shape.back()}, DataType::fp32);
  tape.kernel(normalization_work("liger::rms_norm", x, 4), {&x, &weight}, {&y, &deviation});
  Tape::result(f, y);
  tape.save(f, deviation);
  return y;
}

void rotate_liger(Tape& tape, Tensor& q, Tensor& k, LigerRotation by) {
  constexpr std::string_view kForward = "liger::rope", kBackward = "liger::rope_backward";
  // Three operations per element: two products and a sum.
  const auto turn = [](Tape& t, std::string_view name, const Tensor& a, const Tensor& b, const Tensor& cosine,
                       const Tensor& sine) {
    TapeKernel work;
    work.name = name;
    work.operator_class = OperatorClass::elementwise;
    work.type = a.type;
    work.flops = 3 * static_cast<double>(a.elements() + b.elements());
    work.shape = {a.elements() + b.elements()};
    t.kernel(work, {&a, &b, &cosine, &sine}, {&a, &b});
  };
  auto f = tape.record({&q, &k}, {by.cosine, by.sine}, [turn](Tape& t, GradientFunction& node, Tensors& g) {
    const Tensor cosine = node.take_saved(t, 0), sine = node.take_saved(t, 1);
    turn(t, kBackward, g[0], g[1], cosine, sine);
    return Tensors{g[0], g[1]};
  });
  turn(tape, kForward, q, k, by.cosine, by.sine);
  q = q.detached(), k = k.detached();
  Tape::result(f, q);
  Tape::result(f, k);
}

Tensor silu_mul_liger(Tape& tape, const Tensor& gate, const Tensor& up) {
  const auto work_of = [](std::string_view name, const Tensor& of, double per_element) {
    TapeKernel work;
    work.name = name;
    work.operator_class = OperatorClass::elementwise;
    work.type = of.type;
    work.flops = per_element * static_cast<double>(of.elements());
    work.shape = {of.elements()};
    return work;
  };
  auto f = tape.record({&gate, &up}, {gate, up}, [work_of](Tape& t, GradientFunction& node, Tensors& g) {
    const Tensor gradient = contiguous(t, g[0]), a = node.take_saved(t, 0), b = node.take_saved(t, 1);
    t.kernel(work_of("liger::swiglu_backward", a, 6), {&gradient, &a, &b}, {&a, &b});
    return Tensors{a, b};
  });
  Tensor y = tape.make("liger::swiglu", gate.shape, gate.type);
  tape.kernel(work_of("liger::swiglu", gate, 2), {&gate, &up}, {&y});
  Tape::result(f, y);
  return y;
}

}  // namespace memwall
