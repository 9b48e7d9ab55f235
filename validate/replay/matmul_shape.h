// A matrix product as the benchmarks and the CUDA back end ask for it: D[m][n] = sum over k of A[m][k] * B[n][k].
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/trace/op.h"

namespace memwall {

struct MatmulShape {
  DataType data_type = DataType::bf16;
  std::int64_t m = 0, n = 0, k = 0;
  bool operator==(const MatmulShape&) const = default;
};

// Bytes of one element of A and B; 0 for a data type without products. tf32 is arithmetic on fp32 data.
constexpr std::size_t matmul_input_bytes(DataType data_type) {
  switch (data_type) {
    case DataType::fp64:
      return 8;
    case DataType::fp32:
    case DataType::tf32:
      return 4;
    case DataType::fp16:
    case DataType::bf16:
      return 2;
    case DataType::fp8:
      return 1;
    default:
      return 0;
  }
}

// Bytes of one element of D; products of fp8 are bf16.
constexpr std::size_t matmul_output_bytes(DataType data_type) {
  return data_type == DataType::fp8 ? 2 : matmul_input_bytes(data_type);
}

}  // namespace memwall
