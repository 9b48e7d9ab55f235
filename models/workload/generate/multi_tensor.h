// Kernels that work on lists of tensors, as optimizers use them (torch._foreach_*, torch._fused_*).
#pragma once

#include <initializer_list>
#include <string_view>

#include "models/workload/generate/operators/tape.h"

namespace memwall {

// One call of a list operator.
struct ListWork {
  std::string_view name;
  OperatorClass operator_class = OperatorClass::optimizer;
  double flops_per_element = 1;  // of the first list
  int lists = 1;                 // that a kernel is handed, results included: fewer tensors fit the more there are
};

// The lists read and written; one that is read twice counts twice, as its kernel loads it twice. The first list says
// how much work it is. REQUIRES: `reads` or `writes` is not empty.
OpId list_kernel(Tape& tape, const ListWork& work, std::initializer_list<const Tensors*> reads,
                 std::initializer_list<const Tensors*> writes);

}  // namespace memwall
