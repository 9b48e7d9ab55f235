// A plan for a step within a budget of device memory, simulated.
#pragma once

#include <string>
#include <vector>

#include "study/study.h"

namespace memwall {

struct AdvisedPlan {
  std::vector<std::string> policies;     // --policy values beside those of the scenario; none: the step as it is
  std::string why;                       // one sentence: what it does, or why it is not the first
  std::string made_by;                   // another planner, whose plan it is; "" = the policy's own
  bool fits = false;                     // within the budget, and in the machine's other memories
  Duration step_time{}, rerun_time{};    // mean over the steps of the trace
  // Of the allocator's calls to the device, which obtain memory and give it back where its cache does not fit; per step.
  // What of it delays the step is not known, but is at most this.
  Duration allocator_time{};
  Bytes peak_reserved = 0, missing = 0;  // reserved: of the device, what the step does not show included
  Bytes bytes_out = 0, bytes_in = 0;     // that the plan copies, per step
  bool lives_recorded = true;            // else bytes are lower bounds (sim/trace/derived_lives.h)
};

// The scenario under these policies too, on a GPU whose memory for the step is the budget, be it less or more than the
// machine's own. With no policies: where that does not fit, step_time and peak_reserved are those with unlimited memory;
// `budget` may be kUnlimitedDevice (study/device_budget.h). Throws as Study::run.
AdvisedPlan simulated_plan(Study& study, const Scenario& scenario, const std::vector<std::string>& policies,
                           Bytes budget);

}  // namespace memwall
