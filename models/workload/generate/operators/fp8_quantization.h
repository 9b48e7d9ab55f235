// Tensors cast to fp8 with one scale each, by the kernels of Transformer Engine.
#pragma once

#include <string_view>

#include "models/workload/generate/configuration/recipe.h"
#include "models/workload/generate/operators/communicator.h"

namespace memwall {

// A tensor in fp8 as it lies, and transposed: [width, rows].
struct Fp8Parts {
  Tensor rows, columns;
};
struct Fp8Usage {
  bool rows = true, columns = false;
};

// `ranks`: who agree on the scale with current scaling; null: nobody. `into`: where it goes; empty parts are made.
Fp8Parts quantize(Tape& tape, Fp8Recipe recipe, const Tensor& x, Fp8Usage usage, Communicator* ranks,
                  const Fp8Parts& into);
// A tensor in fp8, transposed. Empty `into`: it is made.
Tensor transposed_copy(Tape& tape, const Tensor& x, const Tensor& into);

// A product of m x k with k x n by one kernel.
TapeKernel product_work(std::string_view name, DataType type, std::int64_t m, std::int64_t n, std::int64_t k);

}  // namespace memwall
