// A step whose forward and backward run several times before its optimizer does: the gradients add up.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/recipe/accumulated_gradients.h"
#include "sim/machine/machine.h"
#include "sim/machine/pricer.h"
#include "sim/trace/trace.h"

namespace memwall {

struct RepeatedPass {
  OpId begin = 0, end = 0;  // its ops: [begin, end)
  std::vector<AccumulatedGradient> gradients;
  // Where the program assigns the loss of a later pass to the variable that holds the one before: behind this op.
  // kNoOp: nothing is held.
  OpId loss_assigned = kNoOp;
  StorageId loss = kNoStorage;
};

// Each of these passes `times` times. A later one makes storages of its own; what it leaves behind takes the place of
// what the one before has left, which goes where it is made again. A gradient that is there already is added to. What
// only lives before the step (parameters, statistics, inputs) is one for all. REQUIRES: passes are in order and do not
// overlap; times >= 1.
Trace with_repeated_passes(const Trace& trace, const std::vector<RepeatedPass>& passes, std::uint32_t times,
                           const Machine& machine, const Pricer& pricer);

}  // namespace memwall
