// Where backward of a step takes the gradients of parameters as they are made, and what it would do with them if there
// were some already (torch/csrc/autograd/functions/accumulate_grad.h): add to them.
#pragma once

#include <vector>

#include "policies/trace/dataflow.h"
#include "sim/trace/trace.h"

namespace memwall {

struct AccumulatedGradient {
  StorageId gradient = kNoStorage;  // made in the pass, and there when it has ended
  OpId first_writer = kNoOp, last_writer = kNoOp;  // the ops of backward that make it
  // Behind this op the node of the graph that made it has given back what it held: there the sum is formed.
  OpId node_end = kNoOp;
  // Of one that was copied, since something else held it: what was copied. The copy is not made where there is one.
  StorageId copied_from = kNoStorage;
};

// Of ops [pass.begin, end), in the order in which they are taken.
std::vector<AccumulatedGradient> accumulated_gradients(const Trace& trace, const Dataflow& flow, const Pass& pass,
                                                       OpId end);

}  // namespace memwall
