// A linear layer whose frozen weight is kept in NF4, four bits per element: bitsandbytes' Linear4bit, as QLoRA uses it
// (bitsandbytes/autograd/_functions.py, MatMul4Bit).
#pragma once

#include <cstdint>

#include "models/workload/generate/operators/tape.h"

namespace memwall {

// Bytes of a weight of so many elements: half a byte each, and the largest magnitude of every 64 in one byte (double
// quantization; the fp32 scale of 256 of those is left out).
std::int64_t nf4_bytes(std::int64_t elements);

// x [..., k], weight of nf4_bytes(n k) in elements of any type, which needs no gradient; the result has n columns. The
// weight is made 16-bit anew in each call, and once more in backward; neither x nor the 16-bit weight is kept.
Tensor linear_nf4(Tape& tape, const Tensor& x, const Tensor& weight, std::int64_t n);

// The 16-bit weight [n, k] of one in NF4, by two kernels.
Tensor dequantized_nf4(Tape& tape, const Tensor& weight, std::int64_t n, std::int64_t k, DataType type);

}  // namespace memwall
