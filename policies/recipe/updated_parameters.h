// What the optimizer of a step updates: each parameter with its gradient.
#pragma once

#include <string>
#include <vector>

#include "policies/trace/optimizer_step.h"
#include "sim/trace/trace.h"

namespace memwall {

struct UpdatedParameter {
  StorageId value = kNoStorage, gradient = kNoStorage;
  StorageId master = kNoStorage;  // an fp32 copy among the states, which is updated in its place
  std::int64_t elements = 0;
  DataType type = DataType::unknown;  // of its elements
};

// In the order in which the optimizer's lists have them. A gradient is told by its label (the parameter's and ".grad"),
// else by its place in the lists, or by its size. Elements are those of the storage's shape, else as many as its bytes
// hold.
// A master copy is told by its label: the parameter's and ".main" (Megatron-LM), ".master" or ".master_param".
// Throws UsageError with a sentence that begins with `policy` where lists do not pair, or where the states hold more
// than moments and no master copy is told.
std::vector<UpdatedParameter> updated_parameters(const Trace& trace, const Dataflow& flow, const OptimizerStep& step,
                                                 const std::string& policy);

}  // namespace memwall
