// A planner decides which storages of a step leave device memory, and how they come back: a function from the step's
// profile and a budget to a memory plan. One file each, which ends with one registration; `memwall run --policy NAME`
// makes its plan, repairs it (policies/planners/repair.h) and puts it into the trace.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "policies/profile/step_profile.h"
#include "sim/machine/pricer.h"
#include "sim/policy/memory_plan.h"
#include "sim/policy/registry.h"

namespace memwall {

// What a plan has to keep to.
struct Budget {
  Bytes device = 0;  // that the step's storages may take at once, in blocks as the allocator holds them
};

// Copies to and from page-locked memory of the host, on streams of their own.
inline TransferStyle to_host() {
  TransferStyle style;
  style.tier = "host";
  return style;
}

using Planner =
    std::function<MemoryPlan(const StepProfile& profile, const Budget& budget, const Machine&, const Pricer&)>;

struct PlannerInfo {
  std::string name;
  std::string sentence;
  std::vector<ParameterInfo> parameters{};  // beside `budget`, which each has
  std::function<Planner(const PolicyArguments&)> make{};
};

// `const RegisterPlanner registered_chen{{.name = "chen", ...}};`
struct RegisterPlanner {
  explicit RegisterPlanner(PlannerInfo info);
};

// As a --policy value names it: "capuchin:use=swaps". Throws UsageError where it names no planner.
Planner planner_named(const std::string& text);

}  // namespace memwall
