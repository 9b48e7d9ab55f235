// A memory plan of what was found for a step's cycle.
#pragma once

#include "policies/cycle/cycle_of_step.h"
#include "policies/cycle/move_plan.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

// Of a re-run with so many others before it at the same op: PlanPoint::order. Moves stand between re-runs.
constexpr std::uint32_t kMostMoves = 1u << 21;
constexpr std::uint32_t rerun_order(std::uint32_t reruns_before) { return (2 * reruns_before + 1) * kMostMoves; }

// Copies, drops and fetches stand right before the ops of their slots. What is away at the border of two turns lives in
// its tier (StorageDecision::home); what is there at the border and was copied in the turn before is held.
// REQUIRES: is_sound(cycle, plan); `cycle` is of `step`; `tiers` are those of the cycle's paths.
MemoryPlan memory_plan_of(const CycledStep& step, const StepCycle& cycle, const MovePlan& plan,
                          std::vector<TransferStyle> tiers);

}  // namespace memwall
