// What is said of an inference: what it rests on, or why nothing was concluded.
// Internal to the inference.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "models/workload/import/inference/inferred_dataflow.h"
#include "models/workload/import/inference/supposed_allocations.h"

namespace memwall {

inline constexpr std::string_view kNotInferred = "Dataflow cannot be inferred from the profile alone: ";

std::string few_told(const SupposedAllocations& supposed);  // results, by rules
std::string few_found(const InferredDataflow& inferred);    // inputs
std::string too_large(std::size_t work);
std::string basis(const InferredDataflow& inferred);

}  // namespace memwall
