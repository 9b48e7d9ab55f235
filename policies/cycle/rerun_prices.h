// What making the content of a cycle's gaps again takes at least, whoever plans.
#pragma once

#include "policies/cycle/cycle_of_step.h"
#include "policies/cycle/moves_bound.h"

namespace memwall {

// By gap of the cycle of `step` (no re-runs in it). An op that runs again makes all that it writes: a byte of that has
// its share of the op's time. Of several ops that write a storage the cheapest counts. Infinite of what no op of the
// step writes.
//
// RerunPrice::until is where the step overwrites what such an op reads and what lived before the step: no op makes that
// again. An op that writes to it itself (running statistics) can be repeated on a scratch copy.
//
// RerunPrice::with_inputs: what the op reads and the step has given back before the gap begins has to be made again,
// too, or be there in spite of that, on the device or elsewhere. Its time, by the same rule, is shared by all that is
// written by ops that read it: so no op's time is counted more than once, whatever is made again. Kept, its bytes are
// as many more that have to be elsewhere, each at the price of one byte. So the price is where
//   price = own + sum over such inputs of min(time of the input, price x its bytes) / (bytes of all written from it),
// which does not depend on what else is made again (docs/planner.md proves it).
RerunPrices least_rerun_prices(const StepProfile& profile, const CycledStep& step, const StepCycle& cycle);

}  // namespace memwall
