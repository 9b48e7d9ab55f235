// Plans again until the plan keeps to its budget with the allocator of the run, at its settings: what a planner counts
// in bytes, the allocator holds in blocks and segments, some of them in pieces.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "policies/planners/planner.h"
#include "policies/profile/plan_estimate.h"

namespace memwall {

struct RepairedPlan {
  MemoryPlan plan;
  PlanEstimate estimate;         // with the budget as the device's memory
  Bytes asked = 0;               // budget for which the planner made it; 0: the step as it is
  Bytes over = 0;                // that the device would need beyond the budget, and slower tiers beyond their memory
  Bytes over_beside = 0;         // of these, in slower tiers
  bool in_pieces = false;        // `over` is a block that finds no place in one piece, where enough bytes are free
  std::string planner{};         // OtherPlanner::name
  bool is_untouched = false;     // the step as it is: the plan is empty
  std::string restricted{};      // RestrictedPlan::note; of an empty plan its refusal
  // Simulated with the budget as the device's memory: of the step, and of it the allocator's calls to the device, which
  // obtain and give back memory where its cache does not fit; of the step as it is, all that it is longer by.
  Duration step_time{}, held_up{};
  Duration planned{};      // ProposedPlans::planned
  std::uint64_t work = 0;  // ProposedPlans::work of all that were asked for
  // What the step would take at least without these calls: some of them delay nothing.
  Duration step_without_calls() const { return std::max(step_time - held_up, std::min(planned, step_time)); }
  // The allocator gives memory back to the device and obtains it anew while the device waits.
  bool is_held_up() const { return step_time - step_without_calls() > step_time / 50; }
};

class TriedPlans;  // policies/planners/tried_plans.h

// Plans that a planner is asked for, of which nothing is known.
inline constexpr int kMostTries = 12;
inline constexpr std::uint64_t kAnyWork = std::numeric_limits<std::uint64_t>::max();

// How a planner is asked.
struct RepairEffort {
  Bytes first_asked = 0;         // what it is asked for first, where another plan for that kept to the budget; 0: the budget
  int most_tries = kMostTries;   // plans that it is asked for, at most
  Duration worth = kNever;       // the step of a plan that keeps to the budget and is known
  std::uint64_t most_work = kAnyWork;  // of ProposedPlans::work: then no more is asked for where a plan is known
  bool roughly_first = false;    // which budget to ask for is learned with Budget::roughly, and few plans are made in full
  int most_in_full = 5;          // with roughly_first: plans in full, at most
  int in_full_at_once = 1;  // so many of these are asked for side by side: the planner is called by several threads
  bool makes_room = false;       // PlannerInfo::makes_room
  bool any = false;              // the first plan that keeps to the budget is enough, however slow its step
  const TriedPlans* known = nullptr;        // what others have tried for the same budget
  const RepairedPlan* untouched = nullptr;  // untouched_plan of the same budget, where it is known
};

// The step as it is, on a device of the budget's size.
RepairedPlan untouched_plan(const StepProfile& profile, const Budget& budget, const Pricer& pricer);

// Where the step keeps to the budget as it is with the budget's allocator, and the allocator makes it longer by at most
// 2 %, that: the planner is not asked. Else asks the planner for less than the budget, by what its plan took too much
// and each time more, until a plan keeps to the budget; then for what lies between that and the last that was too much,
// to half a percent of the budget, as long as the planner counts plans for more as better by a fifth of a percent. Where
// the planner's first plan fits and the allocator holds the step up by more than 2 %, for less, too, until it does not.
// Of plans in which a block finds no place in one piece, the fastest are tried with what is in its way moved, too
// (room_in_one_piece.h), where the planner makes room and they would be faster than what keeps to the budget. Where the planner has nothing more to
// give (the same plan again, in which more lives than was asked for, or five alike in a row), it is asked no more. Of the
// plans that keep to the budget the fastest. Where none does, of those whose need beyond it is the least, to within a
// percent of the budget, the fastest: the step as it is among them. Throws UsageError where a plan cannot be carried out (policies/plan/plan_check.h). Plans are what `restriction` makes of
// them; one that it refuses is that of the step as it is. A plan for less is no faster, but for the allocator's calls to
// the device: where a plan without these is slower by 1 % than what is known or found here, nothing is asked for below it.
RepairedPlan repaired_plan(const Planner& planner, const StepProfile& profile, const Budget& budget,
                           const Pricer& pricer, const PlanRestriction& restriction = {},
                           const RepairEffort& effort = {});

// Where no plan of repaired_plan keeps to the budget: the fastest of those for less memory that do. Which do only
// trying shows: what is over the budget is mostly a block that the allocator has no place for in one piece. Budgets
// that are asked for are parts of the step's own peak, whatever the budget, so that what is found for one is mostly
// tried for a larger one, too: a few behind the first that fits. Of `effort` count `worth`, `makes_room`, `any` and
// `known`. Of steps of many ops fewer are tried; nothing where none does.
std::optional<RepairedPlan> plan_for_less(const Planner& planner, const StepProfile& profile, const Budget& budget,
                                          const Pricer& pricer, const PlanRestriction& restriction,
                                          const RepairEffort& effort = {});

// The first of a planner's plans for these budgets that keeps to `budget` and whose step is shorter than `worth`;
// nothing where there is none. Asked is until the planner has none that could be: with less, plans are no faster. Where
// a block finds no place in one piece, with what is in its way moved, too, where `makes_room`. `known`: as in
// RepairEffort. REQUIRES: budgets descend.
std::optional<RepairedPlan> faster_plan(const Planner& planner, std::span<const Bytes> asked,
                                        const StepProfile& profile, const Budget& budget, const Pricer& pricer,
                                        const PlanRestriction& restriction, Duration worth, bool makes_room,
                                        const TriedPlans* known = nullptr);

// Is another planner asked, too? Where the best plan so far does not keep to the budget, or makes the step slower by
// more than the share. `least`: the step with unlimited memory, or what no plan is faster than.
bool asks_other(const RepairedPlan& best, Duration least, double slower_by);
// Of the best plans of two planners: is the other one taken? Where both keep to the budget, the faster; where one does,
// that, however slow its step; where none does, the other's where it needs less by more than 1 % of the budget.
bool takes_other(const RepairedPlan& best, const RepairedPlan& other, const Budget& budget);

// The planner's plan for the budget, whether it keeps to it or not. Throws as repaired_plan.
RepairedPlan plan_as_made(const Planner& planner, const StepProfile& profile, const Budget& budget,
                          const Pricer& pricer, const PlanRestriction& restriction = {});

}  // namespace memwall
