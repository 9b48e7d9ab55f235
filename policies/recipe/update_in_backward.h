// Where each parameter could be updated as soon as its gradient is there (a hook behind AccumulateGrad), instead of all
// of them behind backward.
#pragma once

#include <string>
#include <vector>

#include "policies/recipe/updated_parameters.h"
#include "policies/trace/dataflow.h"
#include "sim/trace/trace.h"

namespace memwall {

struct EarlyUpdate {
  std::size_t parameter = 0;  // its number
  OpId behind = kNoOp;        // the op behind which its gradient is complete
  OpId like = kNoOp;          // the op of backward that makes the gradient
  OpId freed = kNoOp;         // where the program drops the gradient now; kNoOp: never
};

// One for each parameter, in the order of backward. `step`: the update behind backward. Throws UsageError, a sentence
// that begins with `policy`, where something else needs the gradients together (clipping, a scaler), where they live
// from step to step, or where the trace has not one pass in each step.
std::vector<EarlyUpdate> updates_in_backward(const Trace& trace, const Dataflow& flow, const OptimizerStep& step,
                                             const std::vector<UpdatedParameter>& parameters,
                                             const std::string& policy);

}  // namespace memwall
