// The operators with which a mixture of experts sends tokens to experts and back. Every expert is taken to get an
// equal share, as balanced routing gives it: shapes then do not depend on values.
#pragma once

#include "models/workload/generate/operators/tape.h"

namespace memwall {

struct LargestOfRows {
  Tensor values, indices;
};
// aten::topk over the last dimension.
LargestOfRows topk(Tape& tape, const Tensor& x, std::int64_t count);
// Sum of each row, which stays as 1.
Tensor sum_of_rows(Tape& tape, const Tensor& x);
Tensor div(Tape& tape, const Tensor& a, const Tensor& b);
// x.argsort(stable=True) of whole numbers.
Tensor argsort(Tape& tape, const Tensor& x);
// x // number, of whole numbers.
Tensor floor_divide(Tape& tape, const Tensor& x);
// x[rows]: one row of x per index (aten::index).
Tensor index_rows(Tape& tape, const Tensor& x, const Tensor& rows);
// zeros_like(like).index_add(0, rows, x)
Tensor add_rows(Tape& tape, const Tensor& like, const Tensor& rows, const Tensor& x);

}  // namespace memwall
