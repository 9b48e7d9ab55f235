// Which kernels of two steps are the same: the longest run of equal ones that both have in this order.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "tests/support/step_memory.h"

namespace memwall {

struct KernelAlignment {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;  // numbers of one kernel in both steps, ascending
  // Of each kernel of the first and the second step, and of their ends: how many pairs lie before it.
  std::vector<std::size_t> before_first, before_second;
};

// By phase and operator.
KernelAlignment align_kernels(const std::vector<StepKernel>& first, const std::vector<StepKernel>& second);

}  // namespace memwall
