// Linear layers in fp8, as torchao's Float8Linear runs them eagerly (float8/float8_linear.py, float8_scaling_utils.py;
// tensorwise scales found anew in each call): of a step in bf16 throughout.
//
// Input, weight and the gradient of the result are cast when they are used, with one scale each; kept for backward are
// input and weight in bf16. Converted are nn.Linear with widths of multiples of 16 but the output layer, the last
// product of forward (a filter that torchao's users give it).
#pragma once

#include <string>

#include "sim/machine/machine.h"
#include "sim/machine/pricer.h"
#include "sim/trace/trace.h"

namespace memwall {

// Why no layer of the step can be converted, "" if some can: without the name of the policy and the trace.
std::string fp8_obstacle(const Trace& trace);

// Times of products are scaled from those in bf16, all else that is added is modelled. Throws UsageError in the name of
// the policy `precision` where fp8_obstacle() says why.
Trace with_fp8_layers(const Trace& trace, const Machine& machine, const Pricer& pricer);

}  // namespace memwall
