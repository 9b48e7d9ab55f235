// The step that a memory plan is for, as far as settings of a program that trains depend on it.
#pragma once

#include <string>

namespace memwall {

struct PlanStep {
  double samples = 0, tokens = 0;  // of all forward passes of a step; 0 = unknown
  // "bf16", "fp16", "fp32"; "" = unknown, or of several types.
  std::string compute_dtype{};   // of matrix products
  std::string gradient_dtype{};  // as the optimizer takes them

  bool operator==(const PlanStep&) const = default;
};

}  // namespace memwall
