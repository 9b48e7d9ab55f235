// The planner: for each gap of a step, keep, move or compute again, jointly.
#pragma once

#include <functional>

#include "policies/cycle/move_search.h"
#include "policies/cycle/step_reruns.h"

namespace memwall {

struct StepPlanSettings {
  std::vector<std::string> tiers = {"host"};  // names of the machine's, in the order of preference
  bool recompute = true;
  double robust = 0;     // links are taken to be slower by this share
  Bytes finest = 16384;  // storages below this part of what has to be away stay, if that is possible
  // false: the first plan that keeps to the budget and is no fifth longer than with unlimited memory, or a few tries;
  // joint_bound_seconds is ideal_seconds then.
  bool search = true;
  // Little of that, for a plan that is some percent longer and shows what those for this budget are like.
  bool roughly = false;
  // May re-runs start from small results that the step has given back? Then these stay.
  bool keep_results = true;
  // A plan whose turn takes longer is of no use: where none can be shorter, none is looked for.
  static constexpr double kAnySeconds = 1e18;
  double worth_seconds = kAnySeconds;
  std::size_t others = 0;  // StepPlan::others, at most
  // The fastest of plans that only move, and drop before they fetch, by branch and bound (whole_moves.h), and nothing
  // else: quickly found, or none, where more gaps cover slots over the budget than that looks at.
  bool whole_moves = false;
  // What may be made again: the first so many of these, whatever limits of re-runs there are. Empty: what the bound
  // favours. Without `recompute` nothing.
  std::function<std::vector<RerunCandidate>(const StepProfile&)> candidates{};
};

struct StepPlan {
  MemoryPlan plan;
  std::vector<MemoryPlan> others{};  // that are nearly as good, the best first
  bool fits = false;
  bool too_slow = false;           // none was found, because none is worth it: StepPlanSettings::worth_seconds
  double seconds = 0;              // of a turn, replayed with whole copies one after the other
  double ideal_seconds = 0;        // with unlimited memory
  MovesBound moves_bound;          // of plans that only move
  double joint_bound_seconds = 0;  // of plans that also compute again; without `recompute` that of moves
  double rerun_seconds = 0;
  std::size_t reruns = 0, moves = 0;
  std::uint32_t tried = 0;  // plans
  std::uint64_t work = 0;   // FoundMoves::work of all of them
};

// `budget`: bytes of device memory for the step's storages, on the profile's machine. What holds for any settings is
// kept with the profile, whoever asks next. REQUIRES: budget > 0. Throws UsageError as cycle_of_step and
// links_of_machine.
StepPlan plan_step(const StepProfile& profile, Bytes budget, const StepPlanSettings& settings = {});

}  // namespace memwall
