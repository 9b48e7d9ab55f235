#include "models/workload/generate/operators/kernel_work.h"

namespace memwall {

TapeKernel normalization_work(std::string_view name, const Tensor& x, double per_element) {
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::normalization;
  work.type = x.type;
  work.flops = per_element * static_cast<double>(x.elements());
  work.shape = {x.elements() / x.shape.back(), x.shape.back()};
  return work;
}

TapeKernel whole_reduction(std::string_view name, DataType type, std::int64_t elements) {
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::reduction;
  work.type = type;
  work.flops = static_cast<double>(elements);
  work.shape = {1, elements};
  return work;
}

}  // namespace memwall
