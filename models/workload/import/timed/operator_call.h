// One call of an operator by its tensors, whatever file tells of it, and what such a call costs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/trace/op.h"
#include "sim/trace/shape.h"
#include "sim/units.h"

namespace memwall {

// A tensor that an operator takes or makes.
struct CapturedTensor {
  Shape shape;                         // {} is a scalar
  Shape strides;                       // in elements; {} = one element after the other, the last extent fastest
  int element_bytes = 0;               // 0 = of a type that is not known
  std::uint32_t storage = 0xffffffff;  // its number in the file
};

struct OperatorCall {
  std::string_view name;  // the operator; valid as long as what it was read from
  OperatorClass operator_class = OperatorClass::other;
  double flops = 0;
  std::int64_t elements = 0;  // of the first of its lists of tensors, 0 = not given
  std::int64_t width = 0;     // of a row of a softmax that is not along the last extent, 0 = it is
  bool causal = false;
  std::vector<std::uint32_t> writes;            // numbers of storages
  std::vector<CapturedTensor> inputs, outputs;  // as the operator's schema orders them, absent ones left out
};

struct OperatorCost {
  double flops = 0;  // matrix products, convolutions and attention (models/workload/flops.h); 0 for others
  Bytes bytes = 0;   // device tensors received and returned, each once; of tables only the rows looked up
  DataType data_type = DataType::unknown;  // of the first floating-point device tensor, else of the first
};

}  // namespace memwall
