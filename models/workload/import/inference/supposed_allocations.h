// A profile that lists shapes and no memory events, with an allocation for each result that a rule tells.
//
// What an operator makes follows from its name and its inputs (operator_results.h): of operators that launch work by
// themselves, and of those that make an empty tensor for one around them that does. With these in the place of memory
// events the inference goes on as ever (tensor_inference.h). When a storage is given back nobody supposes: lives are
// those of an ExecutionTrace alone (derived_lifetimes.h).
// Internal to the inference.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/workload/import/timed/timed_import.h"

namespace memwall {

struct SupposedAllocations {
  TimedCapture capture;              // the profile with them
  std::uint64_t work = 0, told = 0;  // pieces of device work; of them, of operators whose results a rule tells
  std::vector<std::pair<std::string, std::uint64_t>> untold;  // pieces by operator, most first
  std::uint64_t results = 0;
  double told_share() const { return work == 0 ? 0 : static_cast<double>(told) / static_cast<double>(work); }
};

// REQUIRES: `imported` is what import_timed_capture gave of `capture`, which has no memory events of a device.
SupposedAllocations suppose_allocations(const ImportedTrace& imported, const TimedCapture& capture);

}  // namespace memwall
