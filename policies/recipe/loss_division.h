// The loss of a pass divided by a number, as programs do that add up the gradients of several passes: `loss / N` before
// backward, and its gradient behind it.
#pragma once

#include <optional>
#include <vector>

#include "policies/trace/dataflow.h"
#include "sim/machine/machine.h"
#include "sim/machine/pricer.h"
#include "sim/trace/trace.h"

namespace memwall {

// What backward begins with.
struct Loss {
  OpId made = kNoOp;             // the op of forward that makes it
  StorageId value = kNoStorage;  // what it makes: a number
  StorageId seed = kNoStorage;   // the number that backward begins with
  OpId seeded = kNoOp;           // what makes that last
};

// Of a pass. The loss is the number that forward makes last (a scaler's product with its scale left out), the seed the
// number that backward makes first. Nothing where they are not told.
std::optional<Loss> loss_of(const Trace& trace, const Dataflow& flow, const Pass& pass);

// The trace with every one of these losses divided. The quotient takes the loss's place: in its readers, and where it
// is freed.
Trace with_divided_losses(const Trace& trace, const Dataflow& flow, const std::vector<Loss>& losses,
                          const Machine& machine, const Pricer& pricer);

}  // namespace memwall
