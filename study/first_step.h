// The first step of a job whose steps take page-locked memory from PyTorch's pool: it fills the pool.
#pragma once

#include <functional>

#include "traces/run/run.h"

namespace memwall {

// The longest first step of a rank where the allocators' caches are empty and all that they obtain costs time
// (SimulationOptions::first_step). 0 where no memory is page-locked in a step, where there is no pool, so that every
// step page-locks alike, and where the step does not fit. `run_again`: as `run` was, not recorded, as a first step.
Duration first_step(const Run& run, const std::function<Run()>& run_again);

}  // namespace memwall
