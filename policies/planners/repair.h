// Plans again until the plan keeps to its budget with the real allocator: what a planner counts in bytes, the allocator
// holds in blocks and segments, some of them in pieces.
#pragma once

#include "policies/planners/planner.h"
#include "policies/profile/plan_estimate.h"

namespace memwall {

struct RepairedPlan {
  MemoryPlan plan;
  PlanEstimate estimate;  // with the budget as the device's memory
  Bytes over = 0;         // that the device would need beyond the budget
};

// Asks the planner for less than the budget, by what its plan took too much and each time more, until a plan keeps to the
// budget or the planner gives the same plan again; then for what lies between that and the last that was too much, to
// half a percent of the budget. At most eight plans are made. The one for the most that keeps to the budget, else the
// one that needs least beyond it. Throws UsageError where a plan cannot be carried out (policies/plan/plan_check.h).
RepairedPlan repaired_plan(const Planner& planner, const StepProfile& profile, const Budget& budget,
                           const Pricer& pricer);

}  // namespace memwall
