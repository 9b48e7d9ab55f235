// Memory plans that policies have made before. A planner may take seconds, and the same plan is asked for more than
// once: to simulate the step under it, and to write it to a file.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/policy/memory_plan.h"
#include "sim/trace/trace.h"

namespace memwall {

struct MadePlan {
  MemoryPlan plan;
  std::vector<std::string> notes{};      // what the policy says of it, for Trace::notes
  std::optional<MemoryBudget> budget{};  // that it was made for
};

// The plan of a key, which names all that the plan follows from; `make` makes it where it is not known. Several threads
// may ask at once. Empty: nothing is remembered.
using PlanCache =
    std::function<std::shared_ptr<const MadePlan>(const std::string& key, const std::function<MadePlan()>& make)>;

}  // namespace memwall
