// Copies between device memory and page-locked memory of the host, as planners ask for them.
#pragma once

#include <string>

#include "sim/machine/machine.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

// On streams of their own.
TransferStyle to_host();

// Throws UsageError where the machine has no tier "host", or no way between it and device memory in both directions.
// `planner`: by name, for the message.
void require_host(const std::string& planner, const Machine& machine);

}  // namespace memwall
