// The matrix product that stands for a kernel of which only FLOPs and bytes are known.
#pragma once

#include <cstddef>
#include <cstdint>

namespace memwall {

// D[m][n] = sum over k of A[m][k] * B[n][k], done `repeat` times.
struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0;
  std::uint64_t repeat = 1;

  double flops() const;
  // What all of them touch once: A and B with elements of `input_bytes`, D with elements of `output_bytes`.
  double bytes(std::size_t input_bytes, std::size_t output_bytes) const;
  bool operator==(const ProductShape&) const = default;
};

// Every dimension is a multiple of this: what fp8 needs, and what makes tensor cores run in full tiles.
inline constexpr std::int64_t kProductStep = 16;

// With m = n, FLOPs 2 m n k and bytes input (m k + k n) + output m n leave
//   output m^3 - bytes m + input flops = 0,
// which has two roots, a flat product and a deep one. The one nearer to a cube is taken; where there is no root,
// because no product of so many FLOPs touches so little, a cube. Dimensions are rounded to kProductStep, so that
// FLOPs and bytes of small products are not met exactly.
// REQUIRES: flops > 0 and finite, bytes >= 0 and finite, element sizes > 0.
ProductShape product_shape(double flops, double bytes, std::size_t input_bytes, std::size_t output_bytes);

// The same work in several smaller products, so that A and B have at most `largest_input` bytes each and D
// `largest_output`. REQUIRES: each holds at least kProductStep^2 elements.
ProductShape split_to_fit(ProductShape shape, std::size_t input_bytes, std::size_t output_bytes,
                          std::size_t largest_input, std::size_t largest_output);

}  // namespace memwall
