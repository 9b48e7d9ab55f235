// The plan of rotor (rotor.cpp) for what lives, as if memory were never in pieces.
#pragma once

#include <cstdint>

#include "policies/profile/step_profile.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

// The fastest within the budget; where there is none, one that takes the least memory.
MemoryPlan rotor_plan(const StepProfile& profile, Bytes budget, std::uint32_t slots);

}  // namespace memwall
