// What becomes of a memory plan where it must do no more than some program can execute: a function from a plan that can
// be carried out to such a one.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "sim/error.h"
#include "sim/policy/memory_plan.h"
#include "sim/trace/trace.h"

namespace memwall {

struct RestrictedPlan {
  MemoryPlan plan;      // empty where it is refused
  std::string refusal;  // a sentence; empty = none
  std::string note;     // what was moved or left out, and why: sentences; empty = nothing
};

// What is restricted already stays as it is. Empty: plans stay as they are made. REQUIRES: no fetch of the plan says
// `latest_safe`.
using PlanRestriction = std::function<RestrictedPlan(MemoryPlan, const Trace&)>;

// Throws UsageError where the plan is refused; `maker`: of the plan, for messages.
inline RestrictedPlan restricted(const PlanRestriction& restriction, MemoryPlan plan, const Trace& trace,
                                 const std::string& maker) {
  if (!restriction) return {std::move(plan), "", ""};
  RestrictedPlan found = restriction(std::move(plan), trace);
  if (!found.refusal.empty()) throw UsageError(maker + ": " + found.refusal);
  return found;
}

}  // namespace memwall
