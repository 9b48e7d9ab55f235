// A kernel that autograd does not record: of masks, positions and other whole numbers.
#pragma once

#include <initializer_list>
#include <string_view>

#include "models/workload/generate/operators/tape.h"

namespace memwall {

struct UntrackedKernel {
  std::string_view name;
  OperatorClass operator_class = OperatorClass::elementwise;  // or memory, or reduction along rows
  DataType type = DataType::int64;                            // of the work
  Bytes bytes = -1;                                           // < 0: all that its tensors touch
};

// A new tensor of that shape and type, made of what is read. One FLOP per element of the result, of a reduction per
// element of the first tensor, of memory none. Throws as Tape::make does.
Tensor untracked(Tape& tape, const UntrackedKernel& kernel, std::initializer_list<const Tensor*> reads,
                 const Shape& shape, DataType type);

}  // namespace memwall
