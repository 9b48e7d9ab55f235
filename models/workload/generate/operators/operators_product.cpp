#include "models/workload/generate/operators/operators_product.h"

#include "models/workload/flops.h"

namespace memwall {

Tensor product(Tape& tape, std::string_view name, Product p, std::initializer_list<const Tensor*> reads,
               const Shape& shape, DataType type) {
  Tensor y = tape.make(name, shape, type);
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::gemm;
  work.type = type;
  work.flops = gemm_flops(static_cast<double>(p.m), static_cast<double>(p.n), static_cast<double>(p.k),
                          static_cast<double>(p.batch));
  work.shape = {p.batch, p.m, p.n, p.k};
  tape.kernel(work, reads, {&y});
  return y;
}

}  // namespace memwall
