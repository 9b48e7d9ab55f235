// The GPU memory that a scenario gives its step, in place of what the machine has.
#pragma once

#include <limits>
#include <memory>
#include <string>

#include "sim/machine/machine.h"
#include "sim/policy/given_budget.h"
#include "sim/trace/trace.h"

namespace memwall {

// Device memory that is no limit: RunOptions::device_bytes of a step with unlimited memory.
inline constexpr Bytes kUnlimitedDevice = std::numeric_limits<Bytes>::max() / 4;

// Of Scenario::budget: a size ("24GiB"), or a share of what the device has for the step ("60%"). Throws UsageError.
GivenBudget parse_device_budget(const std::string& text);

// The machine with as much device memory for the step's storages, beside what is not the step's. Throws UsageError
// where it has no memory "hbm".
std::shared_ptr<const Machine> with_device_bytes(const Machine& machine, const Trace& trace, Bytes bytes);

}  // namespace memwall
