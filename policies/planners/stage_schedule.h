// A schedule of stages (rotor_chain.h) as a part of a memory plan: of rotor, and of whatever else chooses such
// schedules.
//
// Forward steps before the first backward are the program's own, each later one is a re-run of the unit's ops right
// before the backward that it is for. What a step makes stays until the last that reads it, before it is made again.
#pragma once

#include <vector>

#include "policies/planners/rotor_stages.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

// Adds what the steps of a pass need. `backward`: where backward of the pass begins. REQUIRES: backward steps come in
// their order, the last stage's, which is no unit, first; no step in between runs a unit again that is not repeatable;
// each reads what one before it has made.
void add_schedule(const StepProfile& profile, const ParameterGathers& gathers, const RotorPass& pass, OpId backward,
                  const std::vector<RotorStep>& steps, MemoryPlan& plan);

}  // namespace memwall
