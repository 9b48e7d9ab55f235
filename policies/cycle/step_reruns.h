// Re-runs of a step's ops as slots of its cycle: which storages could be made again, at what price, and the cycle in
// which some of them are.
#pragma once

#include <vector>

#include "policies/cycle/cycle_of_step.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

// Content that would be given up in the gap and made again for the use behind it.
struct RerunCandidate {
  Gap gap;
  double seconds_per_byte = 0;  // of the ops that make it from what is there, alone
};

// Of the gaps in which a slot of the step is over the budget; the cheapest first. All of them can be made again
// together: what would make the re-runs of those before it long, as they start from it, is left out.
// `limits`: of one re-run.
struct RerunLimits {
  std::size_t ops = 64;
  Bytes written = 0;  // bytes of all that its ops write
};
std::vector<RerunCandidate> rerun_candidates(const StepProfile& profile, const CycledStep& step, Bytes budget,
                                             const RerunLimits& limits);

// What the plan drops and runs again, in the order in which it is last used before it is dropped; `plan` may do more.
std::vector<RerunCandidate> candidates_of_plan(const StepProfile& profile, const MemoryPlan& plan);

// By storage of the trace: results of which the step has no more use in backward, and which take longer to make than to
// move and are more than a ten-thousandth of the step, so that memory for them is cheap: what CycledStep::kept may be.
// Means of rows, from which large results are made again by cheap ops.
std::vector<bool> results_worth_keeping(const StepProfile& profile, const CycleLinks& links);

struct CycleWithReruns {
  CycledStep step;  // a slot per re-run, too
  std::vector<PlannedRerun> reruns;
  std::vector<PlannedKeep> keeps;          // of what re-runs start from behind its end
  std::vector<StorageDecision> decisions;  // the drops; copies and fetches are another's
};

// The first `many` candidates are made again. What an earlier re-run makes on its way stays for its own use. What
// cannot be made again, because others are not there, is left as it was.
CycleWithReruns cycle_with_reruns(const StepProfile& profile, const CycledStep& step,
                                  const std::vector<RerunCandidate>& candidates, std::size_t many);

}  // namespace memwall
