// In which type PyTorch's autocast runs an operator on a GPU (aten/src/ATen/autocast_mode.cpp, and the table of
// docs/source/amp.md).
#pragma once

#include <cstdint>
#include <string>

namespace memwall {

enum class AutocastRule : std::uint8_t {
  low,     // inputs are cast to autocast's type: products, convolutions, fused attention
  fp32,    // inputs are cast to fp32: sums of many terms, powers, logarithms, normalizations, losses
  widest,  // inputs are cast to the widest of their types: cat, stack
  as_given
};

// `name`: as plain_operator_name gives it. A log_softmax is as given: cross_entropy, which nearly all programs call for
// it, runs beneath autocast.
AutocastRule autocast_rule(const std::string& name);

}  // namespace memwall
