// How the step's engine adds gradients that meet.
#pragma once

#include "sim/trace/trace.h"

namespace memwall {

// To a third tensor, as of tensors of a subclass (fake tensors); false: to the first of both, or it shows no sums.
bool sums_gradients_anew(const Trace& trace);

}  // namespace memwall
