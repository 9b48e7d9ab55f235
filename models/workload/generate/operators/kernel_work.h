// The work of kernels that several operators launch. FLOPs are counted, shapes are [rows, columns] in elements.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/workload/generate/operators/tape.h"

namespace memwall {

// A tensor as a matrix: all dimensions but the last, and the last.
struct TensorRows {
  std::int64_t rows, width;
};
inline TensorRows rows_of(const Tensor& x) { return {x.elements() / x.shape.back(), x.shape.back()}; }

// Over the rows of x, of the length of its last dimension, with so many FLOPs for each element.
TapeKernel normalization_work(std::string_view name, const Tensor& x, double per_element);

// Of all elements to one number (a sum, a mean, the largest), with a FLOP for each.
TapeKernel whole_reduction(std::string_view name, DataType type, std::int64_t elements);

}  // namespace memwall
