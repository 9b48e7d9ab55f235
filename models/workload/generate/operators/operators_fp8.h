// A linear layer in fp8 with scales found anew in each call, one per tensor: torchao's Float8Linear
// (float8/float8_linear.py, float8_scaling_utils.py), run eagerly.
#pragma once

#include <array>
#include <cstdint>

#include "models/workload/generate/operators/communicator.h"
#include "models/workload/generate/operators/tape.h"

namespace memwall {

// x [..., k] and weight [n, k], both bf16 and kept for backward as they are; bias may be empty. Input, weight and
// gradient are cast when they are used, the gradient and the weight once more in backward.
// Throws UsageError where torch._scaled_mm refuses the sizes: k, n and the rows of x must be multiples of 16.
Tensor linear_fp8(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias = {});

// A tensor in fp8 and the number that it was multiplied by.
struct ScaledTensor {
  Tensor values, scale;
  void reset() {
    values.reset();
    scale.reset();
  }
};
// Cast with a scale from its largest magnitude; `sharers`: of all their parts (DTensor), null: of its own.
ScaledTensor to_fp8(Tape& tape, const Tensor& x, Communicator* sharers = nullptr);
// a [m, k] by b [k, n], which lie as they are given: in 16 bits, of that shape.
Tensor scaled_mm(Tape& tape, const Tensor& a, const Tensor& left_scale, const Tensor& b, const Tensor& right_scale,
                 std::array<std::int64_t, 3> mnk, const Shape& shape);
// Throws UsageError as linear_fp8 does.
void require_fp8_multiples(std::int64_t rows, std::int64_t n, std::int64_t k);

}  // namespace memwall
