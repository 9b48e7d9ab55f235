// A step as a memory plan from a file makes it.
#pragma once

#include <filesystem>

#include "sim/machine/machine.h"
#include "sim/machine/pricer.h"
#include "sim/policy/plan_restriction.h"
#include "sim/trace/trace.h"

namespace memwall {

// Of a trace of several ranks each rank's program is changed alike: the plan must be for the program of each, whatever
// their times, and what joins them stays.
// Throws InputError where the file is no plan for this trace and machine (traces/plan/plan_file.h) or cannot be carried
// out, with the first reasons; UsageError where the trace does not know what its ops use or allocate, or `restriction`
// refuses the plan.
Trace planned_trace(const Trace& trace, const std::filesystem::path& plan, const Machine& machine, const Pricer& pricer,
                    const PlanRestriction& restriction = {});

}  // namespace memwall
