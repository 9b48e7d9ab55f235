// The operators of convolutional networks, written on a tape as PyTorch's dispatcher runs them on a GPU: images are
// [batch, channels, rows, columns] in memory (channels first).
#pragma once

#include "models/workload/generate/operators/tape.h"

namespace memwall {

// Parameters and running statistics of a batch normalization; `seen` counts batches (int64).
struct BatchNormalization {
  Tensor weight, bias, mean, variance, seen;
};

// aten::convolution by cuDNN. weight: [channels out, channels in, kernel, kernel]; without `bias` pass an empty tensor.
Tensor convolution(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, std::int64_t stride,
                   std::int64_t padding);
// aten::native_batch_norm in training: the running statistics are written too.
Tensor batch_norm(Tape& tape, const Tensor& x, const BatchNormalization& parameters);
// aten::relu_, aten::add_: the result is the first tensor, which is overwritten.
Tensor relu_in_place(Tape& tape, const Tensor& x);
Tensor add_to(Tape& tape, const Tensor& x, const Tensor& other);
// aten::max_pool2d_with_indices; the indices are int64 and saved.
Tensor max_pool(Tape& tape, const Tensor& x, std::int64_t kernel, std::int64_t stride, std::int64_t padding);
// x.mean((2, 3)): [batch, channels].
Tensor mean_of_positions(Tape& tape, const Tensor& x);
// aten::_adaptive_avg_pool2d to `side` rows and columns.
Tensor adaptive_average_pool(Tape& tape, const Tensor& x, std::int64_t side);

}  // namespace memwall
