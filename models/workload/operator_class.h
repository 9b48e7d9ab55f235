// What kind of work a kernel does, told by its name or by its operator's.
//
// Machines list an efficiency per class (gemm, convolution, attention, ...). Names follow
// PyTorch's ATen operators and the kernels of cuBLAS, cuDNN, CUTLASS, Triton and rocBLAS.
#pragma once

#include <string_view>

#include "sim/trace/op.h"

namespace memwall {

// The operator decides where it is known, since kernel names are the libraries' own business;
// `other` where neither says anything. Either may be empty.
OperatorClass operator_class(std::string_view operator_name, std::string_view kernel_name);

}  // namespace memwall
