// What an operator of PyTorch makes, by its name and the shapes of its inputs alone.
// Source: aten/src/ATen/native/native_functions.yaml of PyTorch, and the rules of recorded_call.h.
// Internal to the inference.
#pragma once

#include <optional>
#include <vector>

#include "models/workload/import/timed/recorded_call.h"

namespace memwall {

struct OperatorResult {
  Shape shape;
  int element_bytes = 0;
  Bytes bytes() const { return static_cast<Bytes>(element_count(shape)) * element_bytes; }
};

// New tensors, in their order; empty where it makes none (it writes what it was given, or returns a view); nothing
// where no rule tells. What is too large to count has no rule.
std::optional<std::vector<OperatorResult>> operator_results(const RecordedCall& call,
                                                            const ConvolutionResults& convolutions);

}  // namespace memwall
