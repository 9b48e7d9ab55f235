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
// temporaries with (the pieces of a foreach implementation). `steps` is empty if there are none. Where the optimizer
// runs in backward there are several: all gradients of one are there when it begins, unless one op updates what has
// gradients from both sides of it.
Optimizer find_optimizer(const Trace& trace, const Dataflow& flow);

// What the steps update in all, with the ops of the first: each is a part of it where the optimizer runs in backward.
// REQUIRES: there is one.
OptimizerStep all_together(const std::vector<OptimizerStep>& steps);

// A gradient that is made (or allocated) by something else once the step has begun; kNoStorage if there is none.
StorageId late_gradient(const Trace& trace, const Dataflow& flow, const OptimizerStep& step);

double total_bytes(const Trace& trace, const std::vector<StorageId>& storages);

// How many parameters a step updates, and what it keeps of each.
struct ParameterCount {
  double parameters = 0;        // that this rank updates
  int bytes_per_parameter = 4;  // on the device
  double share = 1;             // of the parameters written that this rank updates: 1 / ranks where states are
                                // sharded and parameters are not (ZeRO stages 1 and 2)
  bool master = false;          // an fp32 copy of 16-bit parameters is among the states
  double moment_bytes = 8;      // of the states per parameter, that copy left out: 8 of Adam in fp32, 4 in 16 bit

  // Read and written by an update: moments and the copy that it updates, each both ways, and a gradient of that copy's
  // width. 28 where all is fp32, as Ren et al. 2021 ("ZeRO-Offload") measured; 14 where all has 16 bit.
  double update_bytes() const;
};
// Parameters are counted by their own bytes. The element size is that of the kernels which read them in forward; where
// no data type is known (nor of those that read what a copy or an all-gather made of them), states of more than 3.5
// times the parameters' bytes mean 16-bit parameters. An update of a share is told by the all-gather of the parameters
// behind it. States of 16-bit parameters hold a master copy where they are more than 10 bytes per parameter. Where they
// are more than 16 the trace cannot show every parameter, and the states are counted instead, as 8 bytes each or 12
// with a master copy.
ParameterCount count_parameters(const Trace& trace, const Dataflow& flow, const OptimizerStep& step);

}  // namespace memwall
