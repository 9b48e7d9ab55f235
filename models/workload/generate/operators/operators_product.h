// One kernel that multiplies matrices, without history: what operators with a backward of their own are made of.
#pragma once

#include <initializer_list>
#include <string_view>

#include "models/workload/generate/operators/tape.h"

namespace memwall {

// `batch` products of m x k with k x n.
struct Product {
  std::int64_t batch, m, n, k;
};

// A new tensor of that shape and type, made of what is read by a kernel of that name. Throws as Tape::make does.
Tensor product(Tape& tape, std::string_view name, Product p, std::initializer_list<const Tensor*> reads,
               const Shape& shape, DataType type);

}  // namespace memwall
