// What is the same whenever plans of one step are asked for: roughly and in full, with other sizes of what moves. Each
// value is made once for the profile. Internal to policies/cycle.
#pragma once

#include <string>
#include <vector>

#include "policies/cycle/moves_bound.h"
#include "policies/cycle/rerun_order.h"

namespace memwall {

struct CycleBounds {
  MovesBound moves;
  double joint_seconds = 0;  // at most that of moves
};

class PlanningValues {
 public:
  // `links`: of the profile's machine, to the `tiers`. `keep_results`: StepPlanSettings::keep_results. The profile and
  // the links have to outlive it; what it gives lives as long as the profile.
  PlanningValues(const StepProfile& profile, const CycleLinks& links, std::vector<std::string> tiers,
                 bool keep_results);

  // With what may be kept for re-runs.
  const CycledStep& step() const;
  // `joint`: of plans that compute again, too; else both bounds are that of moves.
  const CycleBounds& bounds(Bytes budget, std::size_t peaks, bool joint) const;
  // Of all that may be made again within the limits. `slower`: the links as they are planned for, which follow from the
  // links, the budget and `robust`.
  const RerunOrder& order(const CycleLinks& slower, double robust, Bytes budget, const RerunLimits& limits,
                          const RerunOrderSettings& settings) const;

 private:
  const StepProfile& p_;
  const CycleLinks& links_;
  const std::vector<std::string> tiers_;
  const bool keep_results_;
};

}  // namespace memwall
