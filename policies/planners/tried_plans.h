// What plans take that were tried for one budget: planners that are asked for several budgets, roughly and in full,
// often propose the same again, and to simulate it again would take as long as the first time.
#pragma once

#include <functional>
#include <string>

#include "policies/planners/repair.h"
#include "sim/values_by_key.h"

namespace memwall {

// A plan as text that no other plan has.
std::string key_of(const MemoryPlan& plan);

// Of one profile, budget, allocator and pricer. Several threads may ask at once.
class TriedPlans {
 public:
  // `try_out`: what the plan takes, as the first who asks for this plan finds it. RepairedPlan::plan is `plan`.
  RepairedPlan get(MemoryPlan plan, const std::function<RepairedPlan(const MemoryPlan&)>& try_out) const;
  // Has the plan been tried? Then it can be carried out.
  bool has(const MemoryPlan& plan) const { return tried_.has(key_of(plan)); }

 private:
  ValuesByKey<std::string, RepairedPlan> tried_;  // by key_of(plan); without the plan
};

}  // namespace memwall
