// The cycle of a profile's step and what of it holds for any budget, each made once for a profile, whoever asks.
#pragma once

#include "policies/cycle/cycle_of_step.h"
#include "policies/cycle/moves_bound.h"

namespace memwall {

struct ProfileCycle {
  explicit ProfileCycle(const StepProfile& profile) : step(cycle_of_step(profile)), cycle(step.program) {}

  CycledStep step;
  StepCycle cycle;
};

// They live as long as the profile. Throw as cycle_of_step.
const ProfileCycle& cycle_of(const StepProfile& profile);
const RerunPrices& rerun_prices_of(const StepProfile& profile);

}  // namespace memwall
