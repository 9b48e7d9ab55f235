// A memory plan by names: what of it a program that trains can execute (sim/policy/plan_realization.h).
//
// Re-runs become modules that are checkpointed where the plan does what a second call of them does: all that backward
// needs of their inside is dropped, what later ops read stays, nothing else is run. Or the same with operators whose
// results stay (selective checkpointing), or single operators. Copies become the operators whose results travel, or the
// names of parameters and their like.
#pragma once

#include <vector>

#include "policies/trace/dataflow.h"
#include "sim/policy/memory_plan.h"
#include "sim/policy/plan_realization.h"
#include "sim/trace/trace.h"

namespace memwall {

// The names, and which decisions have one that a program can act on.
struct RealizedPlan {
  PlanRealization names;
  std::vector<bool> storages, reruns;  // as MemoryPlan lists them
};

// Pure functions. REQUIRES: the plan can be carried out (check_plan); `flow` is of `trace`.
PlanRealization realization_of(const MemoryPlan& plan, const Trace& trace, const Dataflow& flow);
RealizedPlan realized_plan(const MemoryPlan& plan, const Trace& trace, const Dataflow& flow);

}  // namespace memwall
