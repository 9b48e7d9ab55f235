// Backward of a normalization as a compiler writes it: one kernel over rows for the gradient of what it read, one over
// columns for those of weight and bias (torch/_decomp/decompositions.py, native_layer_norm_backward), which PyTorch's
// operator gives together.
#pragma once

#include <cstddef>
#include <functional>

#include "sim/machine/machine.h"
#include "sim/machine/pricer.h"
#include "sim/trace/trace.h"

namespace memwall {

// Of operators of which `is_compiled` holds; as they are where their tensors are not told apart by their shapes. A
// measured time is divided as the prices of both are.
Trace with_split_norms(const Trace& trace, const HostCosts& costs, const Pricer& pricer,
                       const std::function<bool(const Op&)>& is_compiled);

}  // namespace memwall
