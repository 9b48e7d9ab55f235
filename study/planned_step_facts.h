// What a trace says of its step that settings of a program that trains depend on. Internal to study/.
#pragma once

#include "sim/trace/trace.h"
#include "traces/plan/plan_step.h"

namespace memwall {

// Samples and tokens; the type of all matrix products; the type of gradients, from the bytes of what backward writes
// and the elements that it computes. What does not agree everywhere is left out.
PlanStep plan_step_of(const Trace& trace);

}  // namespace memwall
