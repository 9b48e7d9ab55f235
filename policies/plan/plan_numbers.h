// Numbers of a memory plan that name nothing, and lists that do not ascend. Internal to policies/plan.
#pragma once

#include <string>
#include <vector>

#include "policies/trace/dataflow.h"
#include "sim/policy/memory_plan.h"
#include "sim/trace/trace.h"

namespace memwall {

inline constexpr std::size_t kMostProblems = 10;

// Sentences, at most so many; empty: whatever a number names is there. `flow` is of `trace`.
std::vector<std::string> problems_of_numbers(const MemoryPlan& plan, const Trace& trace, const Dataflow& flow);

}  // namespace memwall
