// By whom memory plans must be executable, by name.
#pragma once

#include <string>
#include <vector>

#include "sim/policy/plan_restriction.h"

namespace memwall {

// "torch".
std::vector<std::string> executor_names();

// What it makes of plans; "" = nothing. Throws UsageError for another name.
PlanRestriction restriction_of(const std::string& executor);

}  // namespace memwall
