// A forward pass as a chain of units that can be computed again, with what each holds for backward.
#pragma once

#include <vector>

#include "policies/profile/step_profile.h"
#include "policies/trace/segments.h"

namespace memwall {

struct ForwardChain {
  Pass pass;
  std::vector<OpId> ops;  // of forward that compute, ascending
  std::vector<RecomputeUnit> units;  // may be none
  std::vector<Bytes> saved;  // by unit: blocks that it makes and that live until backward
};

// One per pass that has a backward. Units are the segments between articulation points of the dataflow, or the repeated
// modules, whichever are more. Throws UsageError where another policy moves activations of forward.
std::vector<ForwardChain> forward_chains_of(const StepProfile& profile);

// As many neighbours as `sizes` says become one unit each, with what stands between them. Throws std::logic_error
// unless they add up to the chain's units and none is 0: a planner's own mistake.
std::vector<RecomputeUnit> joined_units(const ForwardChain& chain, const std::vector<std::size_t>& sizes);

}  // namespace memwall
