// A linear layer whose frozen weight is kept in NF4, four bits per element: bitsandbytes' Linear4bit, as QLoRA uses it
// (bitsandbytes/autograd/_functions.py, MatMul4Bit).
#pragma once

#include <cstdint>
#include <string>

#include "models/workload/generate/operators/tape.h"

namespace memwall {

// Bytes of a weight of so many elements: half a byte each; and of what its layer has beside it (quant_state, with double
// quantization: bitsandbytes/functional.py): the largest magnitude of every 64 in a byte, their own scales and tables.
std::int64_t nf4_bytes(std::int64_t elements);
std::int64_t nf4_scale_bytes(std::int64_t elements);

// The scales are no parameter: what splits parameters over ranks or moves them to the host leaves them where they are.
Tensor nf4_scales(Tape& tape, const std::string& module, std::int64_t elements);

struct Nf4Weight {
  Tensor packed, scales;
};

// x [..., k], weight of nf4_bytes(n k) in elements of any type, which needs no gradient; the result has n columns. The
// weight is made 16-bit anew in each call, and once more in backward; neither x nor the 16-bit weight is kept.
Tensor linear_nf4(Tape& tape, const Tensor& x, const Nf4Weight& weight, std::int64_t n);

// The 16-bit weight [n, k] of one in NF4, by two kernels.
Tensor dequantized_nf4(Tape& tape, const Nf4Weight& weight, std::int64_t n, std::int64_t k, DataType type);

}  // namespace memwall
