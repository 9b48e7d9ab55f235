#include "models/workload/generate/operators/operators_liger.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "models/workload/flops.h"
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
  auto f = tape.record({&x, &weight}, {}, [](Tape& t, GradientFunction& node, Tensors&) {
    Tensors gradients{node.take_saved(t, 0), {}};
    if (node.needs(1)) gradients[1] = copy_of(t, node.take_saved(t, 1));
    return gradients;
  });
  Tensor of_x, of_weight, losses;
  {
    const NoGradientScope scope(tape);
    of_x = fill(tape, "aten::zeros_like", x.shape, x.type);
    if (weight.requires_gradient()) of_weight = fill(tape, "aten::zeros_like", weight.shape, weight.type);
    losses = fill(tape, "aten::zeros", {rows}, DataType::fp32);
    const Tensor logits = tape.make("aten::empty", {most, vocabulary}, x.type);
    for (std::int64_t done = 0; done < rows; done += most) {
      const PieceShape piece{std::min(most, rows - done), vocabulary, width};
      product(tape, "aten::mm", x.type, {piece.rows, vocabulary, width}, {&x, &weight}, logits);
      loss_kernel(tape, piece, logits, labels, losses);
      product(tape, "aten::mm", x.type, {piece.rows, width, vocabulary}, {&logits, &weight}, of_x);
      if (of_weight)
        product(tape, "aten::addmm", x.type, {vocabulary, width, piece.rows}, {&of_weight, &logits, &x}, of_weight);
    }
  }
  Tensor loss = tape.make("aten::sum", {}, DataType::fp32);
  TapeKernel sum;
  sum.name = "aten::sum";
  sum.operator_class = OperatorClass::reduction;
  sum.type = DataType::fp32;
  sum.flops = static_cast<double>(rows);
  sum.shape = {1, rows};
  tape.kernel(sum, {&losses}, {&loss});
  Tape::result(f, loss);
  tape.save(f, of_x);
  if (of_weight) tape.save(f, of_weight);
  return loss;
}

}  // namespace memwall
