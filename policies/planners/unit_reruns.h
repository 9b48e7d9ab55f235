// Units of forward that run again, but for ops whose results are kept: what planners decide that wrap modules, and name
// ops within them, as PyTorch's selective activation checkpointing does.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "policies/profile/step_profile.h"
#include "policies/recompute/unit_choice.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

struct UnitReruns {
  UnitChoice units;
  bool early_stop = true;  // each run again up to the last tensor that autograd keeps; false: all of it
  bool communicates = false;  // a unit may communicate again, as those of tensor-parallel ranks do
  // Which of a forward's units run again, or others in their place. Empty: all.
  std::function<std::vector<RecomputeUnit>(const Pass&, std::vector<RecomputeUnit>)> taken{};
  // The ops of a unit whose results are kept; ascending. Empty: none.
  std::function<std::vector<OpId>(const RecomputeUnit&)> kept_ops{};
  bool in_turn = true;  // refuses passes that do not alternate; false: of those that do not, few are planned
};

// Every n-th of the units, the n-th first. REQUIRES: n >= 1.
std::vector<RecomputeUnit> every_nth(const std::vector<RecomputeUnit>& units, std::size_t n);

// As the policies `checkpoint` and `selective` plan it. Throws UsageError where a pattern of modules names nothing.
MemoryPlan plan_of_unit_reruns(const StepProfile& profile, const UnitReruns& reruns);

}  // namespace memwall
