// The optimizer step of a trace: which ops it is made of, what it reads and what it updates.
#pragma once

#include <vector>

#include "policies/trace/dataflow.h"
#include "sim/trace/trace.h"

namespace memwall {

// One step's optimizer.
struct OptimizerStep {
  std::vector<OpId> ops;              // device work that updates parameters and states, in order
  std::vector<StorageId> states;      // touched, kind optimizer_state; ascending, as all below
  std::vector<StorageId> parameters;  // written, kind parameter
  std::vector<StorageId> gradients;   // read: all that the step gets from outside
};

struct Optimizer {
  std::vector<OptimizerStep> steps;
  std::vector<StorageId> temporaries;  // used by nothing else
};

// Ops of phase optimizer that touch a state or write a parameter, and those that they share
// temporaries with (the pieces of a foreach implementation). `steps` is empty if there are none.
Optimizer find_optimizer(const Trace& trace, const Dataflow& flow);

// How many parameters a step updates, inferred from sizes.
struct ParameterCount {
  double parameters = 0;
  int bytes_per_parameter = 4;  // on the device: 2 where an fp32 master copy is among the states
  double share = 1;             // of the parameters written that this rank updates: 1 / ranks where states are
                                // sharded and parameters are not (ZeRO stages 1 and 2)
};
// The states' bytes are 8 per parameter (Adam's two fp32 moments) or, for 16-bit parameters, 12 (and an
// fp32 master copy; 8 again where states are four times the parameters' bytes). The
// element size is that of the kernels which read the parameters in forward; where no data type is
// known, states of more than 3.5 times the parameters' bytes mean 16-bit parameters.
ParameterCount count_parameters(const Trace& trace, const Dataflow& flow, const OptimizerStep& step);

}  // namespace memwall
