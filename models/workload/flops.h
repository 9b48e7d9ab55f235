// Floating-point operations of the operators that are counted, by their shapes.
//
// A multiplication and an addition count as two operations. The formulas are those of PyTorch's
// counter (torch/utils/flop_counter.py), so that numbers can be compared with its output. They
// count what the mathematics needs, whatever algorithm a library picks: Winograd does fewer,
// a recomputing attention kernel more.
#pragma once

#include <cstdint>
#include <span>

namespace memwall {

// [batch x] m x k times k x n: 2 batch m n k.
constexpr double gemm_flops(double m, double n, double k, double batch = 1) { return 2 * batch * m * n * k; }

// A convolution with result `output` [N, C_out, spatial...] and weight [C_out, C_in / groups, kernel...]:
// 2 N spatial C_out C_in/groups kernel. A transposed one does the same work per element of its input:
// pass the input's shape instead. Each gradient (of input, of weight) costs the same again.
// 0 if a shape has fewer than 2 dimensions.
double convolution_flops(std::span<const std::int64_t> output, std::span<const std::int64_t> weight);

// Softmax(Q K^T) V for `heads` in all (batch times heads), sequences `query` and `key`, widths of a
// head for Q/K and V: two products. Causal masks are not subtracted.
constexpr double attention_flops(double heads, double query, double key, double width, double value_width) {
  return gemm_flops(query, key, width, heads) + gemm_flops(query, value_width, key, heads);
}

// Its backward pass: the scores again, then four gradients: five products.
constexpr double attention_backward_flops(double heads, double query, double key, double width, double value_width) {
  return 3 * gemm_flops(query, key, width, heads) + 2 * gemm_flops(query, value_width, key, heads);
}

}  // namespace memwall
