// A linear layer in fp8 with scales found anew in each call, one per tensor: torchao's Float8Linear
// (float8/float8_linear.py, float8_scaling_utils.py), run eagerly.
#pragma once

#include "models/workload/generate/operators/tape.h"

namespace memwall {

// x [..., k] and weight [n, k], both bf16 and kept for backward as they are; bias may be empty. Input, weight and
// gradient are cast when they are used, the gradient and the weight once more in backward.
// Throws UsageError where torch._scaled_mm refuses the sizes: k, n and the rows of x must be multiples of 16.
Tensor linear_fp8(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias = {});

}  // namespace memwall
