// What a plan of recomputation says of itself in the summary of a run.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "policies/recompute/recompute_plan.h"
#include "policies/recompute/unit_choice.h"
#include "sim/trace/trace.h"

namespace memwall {

// `forwards`: of the trace.
std::vector<std::string> recompute_notes(const UnitChoice& choice, const RecomputeRules& rules, const Trace& trace,
                                         const RecomputePlan& plan, std::size_t forwards);

// Of that many units that run again.
std::string compiled_units(std::size_t count);

}  // namespace memwall
