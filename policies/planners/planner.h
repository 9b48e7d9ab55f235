// A planner decides which storages of a step leave device memory, and how they come back: a function from the step's
// profile and a budget to a memory plan. One file each, which ends with one registration; `memwall run --policy NAME`
// makes its plan, repairs it (policies/planners/repair.h) and puts it into the trace.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "policies/planners/budget.h"
#include "policies/profile/step_profile.h"
#include "sim/machine/pricer.h"
#include "sim/policy/memory_plan.h"
#include "sim/policy/plan_restriction.h"
#include "sim/policy/registry.h"

namespace memwall {

// What a planner proposes for a budget: its plan, and maybe others that it counts as nearly as good, the best first.
// For which of them the allocator has a place only trying shows.
struct ProposedPlans {
  ProposedPlans(MemoryPlan plan, std::vector<MemoryPlan> more = {}) : best(std::move(plan)), others(std::move(more)) {}

  MemoryPlan best;
  std::vector<MemoryPlan> others;
  std::uint64_t work = 0;  // that was done to find them, of which a second does about a million; 0: little
  Duration planned{};      // the step of the best as the planner counts it, without the allocator; 0: unknown
  bool too_slow = false;   // there is none, because none would be worth it: Budget::worth
};

using Planner =
    std::function<ProposedPlans(const StepProfile& profile, const Budget& budget, const Machine&, const Pricer&)>;

// The least that a step can take within a budget, as proved: of plans that do anything, that only move, and that only
// compute again. 0: nothing is known.
struct LeastSteps {
  Duration any{}, by_moves{}, by_reruns{};
};

// What all plans of a planner consist of.
enum class PlanKind : std::uint8_t { any, moves, reruns };

// What a planner asks where its own plans do not do.
struct OtherPlanner {
  Planner planner;
  std::string name{};  // said in the notes where its plan is taken; "" = not said: the same planner, set otherwise
  // > 0: it is asked first for what the best plan so far was asked for, and so many times at most. For planners whose
  // plans leave the allocator as much to lose as those of the first one.
  int tries = 0;
  bool is_first = false;  // the planner itself, behind its sketch
  // Its plans are quickly made, and it says what their steps take (ProposedPlans::planned): where those for the budget
  // do not keep to it, many are made, for less memory.
  bool is_quick = false;
  PlanKind kind = PlanKind::any;  // it is not asked where no plan of this kind can be better than what is known
  // > 0: its plans take long. Which budget to ask for is learned with Budget::roughly, and of others so many are made.
  int in_full = 0;
  int in_full_at_once = 1;  // of these, side by side
  bool makes_room = false;  // PlannerInfo::makes_room
  // It is asked beside the one before it, on another thread where there is one: both know the same of plans so far.
  bool beside = false;
  // It takes little time and is told nothing of others' plans: where it is luck for which plan the allocator has a
  // place, it is asked before those that search, which then look only for what is faster.
  bool goes_first = false;
};

struct PlannerInfo {
  std::string name;
  std::string sentence;
  // Does its plan follow from the budget? Then the step stays as it is where that keeps to it, and the planner is asked
  // again for less where its plan does not. Else its one plan is taken, and a note says whether the budget holds.
  bool heeds_budget = true;
  // Does its plan follow from each micro-batch's passes alone? Then it takes pipelines' programs
  // (policies/trace/pipelined_passes.h). Of one that does not heed the budget.
  bool plans_each_pass = false;
  // Does its plan follow from code that may change while the process runs (another program, Python)? Then no plan of it
  // is remembered (Rewriter::remember_plans_in).
  bool is_user_code = false;
  // Where arguments decide that; may be left out.
  std::function<bool(const PolicyArguments&)> heeds_budget_with{};
  std::vector<ParameterInfo> parameters{};  // beside `budget`, which each has
  std::function<Planner(const PolicyArguments&)> make{};
  // The same in a hurry, to learn for which budget plans keep to the one that is given; may be left out, and may give
  // an empty one.
  std::function<Planner(const PolicyArguments&)> sketch{};
  // Others, asked in their order as long as no plan keeps to the budget, or the step is slower than with unlimited
  // memory by more than the share (repair.h). May be left out.
  std::function<std::vector<OtherPlanner>(const PolicyArguments&)> others{};
  std::function<double(const PolicyArguments&)> others_if_slower_by{};  // left out: 0
  // With these arguments, is the first plan that keeps to the budget enough, however slow its step? Left out: no.
  std::function<bool(const PolicyArguments&)> takes_any{};
  // ProposedPlans::work of all others together, at most, once a plan is known that keeps to the budget; left out: any.
  std::function<std::uint64_t(const PolicyArguments&)> most_work_of_others{};
  // Asked behind all others, for the budget and for what the best plan was made for: its plan is taken where that keeps
  // to the budget and is faster. Quick; may be left out, and may give an empty one.
  std::function<Planner(const PolicyArguments&)> closing{};
  // What no plan is faster than, for any of its planners; may be left out.
  std::function<LeastSteps(const PolicyArguments&, const StepProfile&, const Budget&)> least{};
  // What its plans and those of the others are held to where --executable asks for nothing. May be left out, and may
  // give an empty one.
  std::function<PlanRestriction(const PolicyArguments&)> restriction{};
  // Where a block finds no place in one piece, may storages be moved that its plans leave where they are?
  bool makes_room = false;
  // A sentence for the notes about what its plan leaves undone, and why; empty, or "" = none. Asked where the plan does
  // not keep to the budget, or the planner does not heed it.
  std::function<std::string(const StepProfile& profile, const MemoryPlan& plan)> remark{};
  // A sentence for the notes about what was proved for the budget as it was given, whatever plan was found; may be
  // left out, and may give "". Not asked where the step stays as it is.
  std::function<std::string(const PolicyArguments&, const StepProfile& profile, const Budget& budget,
                            const MemoryPlan& plan)>
      proof{};
};

// `const RegisterPlanner registered_chen{{.name = "chen", ...}};`
struct RegisterPlanner {
  explicit RegisterPlanner(PlannerInfo info);
};

// As a --policy value names it: "capuchin:use=swaps". Throws UsageError where it names no planner.
Planner planner_named(const std::string& text);

}  // namespace memwall
