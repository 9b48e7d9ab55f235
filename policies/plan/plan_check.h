// Can a memory plan be carried out? Written apart from the writer: it plays the plan over the host program and holds
// every use of a storage against what is where then.
#pragma once

#include <string>
#include <vector>

#include "policies/trace/dataflow.h"
#include "sim/policy/memory_plan.h"
#include "sim/trace/trace.h"

namespace memwall {

// Sentences, at most ten; empty = it can. Whether the machine has the tiers and ways to them is asked when copies are
// priced. `flow` is of `trace`.
std::vector<std::string> check_plan(const MemoryPlan& plan, const Trace& trace, const Dataflow& flow);

}  // namespace memwall
