// A linear layer whose frozen weight is kept in four bits by GPTQ, in groups of 128, as AutoGPTQ's QuantLinear without
// ExLlama's kernels runs it on many rows (auto_gptq/nn_modules/qlinear/qlinear_cuda_old.py): the weight is unpacked by
// operators of PyTorch in each call, and the 16-bit result is kept for backward.
#pragma once

#include <cstdint>

#include "models/workload/generate/operators/tape.h"

namespace memwall {

// Bytes of the weight of a layer from k to n: four bits an element, a 16-bit scale and a four-bit zero per group and
// column, the group of each row.
std::int64_t gptq_bytes(std::int64_t n, std::int64_t k);

// x [..., k], weight of gptq_bytes(n, k); the result has n columns.
Tensor linear_gptq(Tape& tape, const Tensor& x, const Tensor& weight, std::int64_t n);

}  // namespace memwall
