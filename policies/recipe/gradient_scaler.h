// The loss scaled, so that gradients in fp16 do not vanish (torch.amp.GradScaler).
#pragma once

#include <string>

#include "sim/machine/machine.h"
#include "sim/machine/pricer.h"
#include "sim/trace/trace.h"

namespace memwall {

// Why a scaler cannot stand in the step, "" if it can: without the name of the policy and the trace.
std::string scaler_obstacle(const Trace& trace);

// The loss times a scale, and so its gradient; before each update all gradients are divided by it and checked for
// infinities, which the host reads; behind it the scale is adapted. All of it is modelled. Throws UsageError where
// scaler_obstacle() says why, in the name of `policy`.
Trace with_gradient_scaler(const Trace& trace, const Machine& machine, const Pricer& pricer, const std::string& policy);

}  // namespace memwall
