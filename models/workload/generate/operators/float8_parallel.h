// Linear layers in fp8 over tensor-parallel ranks that share tokens between them, as torchtitan has them with one scale
// per tensor (torchao 0e0fba8f69f4, float8/float8_tensor_parallel.py: PrepareFloat8ModuleInput, Float8ColwiseParallel,
// Float8RowwiseParallel): what is gathered is cast before, and travels as fp8; sums are scattered in 16 bits. A scale
// is that of the whole tensor (DTensor), so that each cast all-reduces a number. The gradient of a result is cast once,
// for both products of backward; weights are cast again there, what was multiplied is kept in fp8.
#pragma once

#include <vector>

#include "models/workload/generate/operators/operators_parallel.h"

namespace memwall {

// x W^T of all tokens for each weight W, the rows of this rank; x: this rank's tokens. The sum of their inputs'
// gradients is scattered once. Pieces beside the gather where parallel.overlaps(). REQUIRES: parallel.by_tokens().
Tensors float8_columns(Tape& tape, TensorParallel& parallel, const Tensor& x,
                       const std::vector<const Tensor*>& weights);
// This rank's tokens of the sum over ranks of x W^T, W the columns of this rank. REQUIRES: likewise.
Tensor float8_row(Tape& tape, TensorParallel& parallel, const Tensor& x, const Tensor& weight);

}  // namespace memwall
