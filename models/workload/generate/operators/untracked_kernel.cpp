#include "models/workload/generate/operators/untracked_kernel.h"

#include "models/workload/generate/operators/kernel_work.h"

namespace memwall {

Tensor untracked(Tape& tape, const UntrackedKernel& kernel, std::initializer_list<const Tensor*> reads,
                 const Shape& shape, DataType type) {
  Tensor y = tape.make(kernel.name, shape, type);
  TapeKernel work;
  work.name = kernel.name;
  work.operator_class = kernel.operator_class;
  work.type = kernel.type;
  work.bytes = kernel.bytes;
  work.flops = kernel.operator_class == OperatorClass::memory ? 0 : static_cast<double>(y.elements());
  work.shape = {y.elements()};
  if (kernel.operator_class == OperatorClass::reduction) {
    const TensorRows rows = rows_of(**reads.begin());
    work.flops = static_cast<double>(rows.rows * rows.width);
    work.shape = {rows.rows, rows.width};
  }
  tape.kernel(work, reads, {&y});
  return y;
}

}  // namespace memwall
