// How well the prices of a machine hold, by kind of work: from the residuals that its file states.
#pragma once

#include <vector>

#include "sim/machine/machine.h"

namespace memwall {

// Of kernels by operator class, of collectives over the innermost fabric, and of what a framework does on the host.
// What states no residual is left out.
std::vector<PriceError> price_errors_of(const Machine& machine);

}  // namespace memwall
