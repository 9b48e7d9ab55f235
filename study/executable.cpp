#include "study/executable.h"

#include <fmt/format.h>

#include "policies/plan/executable_plan.h"
#include "sim/error.h"

namespace memwall {

std::vector<std::string> executor_names() { return {"torch"}; }

PlanRestriction restriction_of(const std::string& executor) {
  if (executor.empty()) return {};
  if (executor != "torch")
    throw UsageError(fmt::format("--executable {}: expected {}.", executor, listed(executor_names())));
  return [](MemoryPlan plan, const Trace& trace) { return executable_plan(std::move(plan), trace, Dataflow(trace)); };
}

}  // namespace memwall
