// Plans tried with the allocator of the run, on a device whose memory is the budget.
#pragma once

#include <optional>
#include <vector>

#include "policies/planners/repair.h"
#include "policies/planners/tried_plans.h"
#include "sim/machine/machine.h"

namespace memwall {

class PlanTrials {
 public:
  // All must outlive it. `known`: what others have tried, of the same profile, budget and pricer; null: nothing.
  PlanTrials(const StepProfile& profile, const Budget& budget, const Pricer& pricer, const PlanRestriction& restriction,
             const TriedPlans* known = nullptr);

  RepairedPlan untouched() const;

  // What the planner proposes for so many bytes. `worth`, `roughly`: as in Budget.
  ProposedPlans proposed(const Planner& planner, Bytes asked, Duration worth, bool roughly = false) const;

  // The plan, checked, and what the restriction makes of it. `issues`: copies back are issued where no restriction asks
  // for that. Throws UsageError where the plan cannot be carried out.
  RestrictedPlan restricted(MemoryPlan plan, bool issues) const;

  RepairedPlan tried(RestrictedPlan plan, Bytes asked) const;

  // Of a plan in which a block finds no place in one piece: with what is in its way moved, too, as often as that may
  // help. Nothing where that does not do, or its step is not shorter than `worth`.
  std::optional<RepairedPlan> with_room(const RepairedPlan& in_pieces, Duration worth) const;

  // The best of those that were proposed for one budget; no more are tried than until one keeps to the budget without
  // being held up by the allocator's calls. Those in which a block finds no place in one piece are added to
  // `in_pieces`.
  RepairedPlan best_proposed(RestrictedPlan best, ProposedPlans proposed, Bytes asked,
                             std::vector<RepairedPlan>& in_pieces) const;

  // With PlanEstimate.
  RepairedPlan estimated(RepairedPlan best) const;

 private:
  RepairedPlan simulated(const MemoryPlan& plan, SimulatedPlan& simulation) const;

  const StepProfile& profile_;
  const Budget& budget_;
  const Machine machine_;
  const Pricer& pricer_;
  const PlanRestriction& restriction_;
  const TriedPlans own_;
  const TriedPlans& known_;
};

// The fastest of those that need least beyond the budget: nothing, or the least to within a percent of it.
// REQUIRES: not empty.
std::size_t best_index(const std::vector<RepairedPlan>& tried, const Budget& budget);
RepairedPlan best_of(std::vector<RepairedPlan>& tried, const Budget& budget);

}  // namespace memwall
