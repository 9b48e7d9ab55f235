// The model of a trace by the names of its parameters and buffers. Internal to policies/plan.
#pragma once

#include <vector>

#include "sim/policy/model_parameters.h"
#include "sim/trace/trace.h"

namespace memwall {

// What lived on the device before the step as a parameter, buffers of the model among it, and has a name that no other
// has; ascending by name. Labels that are an operator's, or stand for a parameter without a name, are none.
std::vector<NamedParameter> named_parameters(const Trace& trace);

}  // namespace memwall
