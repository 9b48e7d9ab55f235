// How many kernels one call of an operator on lists of tensors launches (torch._foreach_*, torch._fused_*).
#pragma once

#include <cstdint>
#include <span>

namespace memwall {

// `elements`: of each tensor of the first list; `lists`: that a kernel is handed, results included. A launch takes 320
// blocks of 65,536 elements, and 110, 64, 48, 36 or 30 tensors for 1 to 5 lists (PyTorch,
// ATen/native/cuda/MultiTensorApply.cuh). From 1 to 65,535.
int multi_tensor_launches(std::span<const std::int64_t> elements, int lists);

}  // namespace memwall
