// When stage 3 needs which parameter whole: units, executions, and for how long each is kept.
// Decides only; zero_gathers.h acts on it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "policies/sharding/zero_analysis.h"
#include "policies/sharding/zero_settings.h"
#include "sim/trace/trace.h"

namespace memwall {

// A run of ops of one unit in one phase, in host order.
struct UnitExecution {
  std::string unit;
  std::vector<OpId> ops;              // those that use parameters; ascending
  std::vector<StorageId> parameters;  // needed whole: the unit's own and what else its ops use; ascending
  std::set<std::uint16_t> streams;    // of the ops
};

// A parameter gathered before execution `first` and kept until after execution `last`.
struct GatheredLifetime {
  StorageId parameter = kNoStorage;
  std::size_t first = 0, last = 0;
};

struct GatherPlan {
  std::vector<UnitExecution> executions;
  std::vector<GatheredLifetime> lifetimes;  // by first execution, then parameter
  std::size_t units = 0;
};

GatherPlan plan_gathers(const Trace& trace, const ZeroAnalysis& analysis, const ZeroSettings& settings);

}  // namespace memwall
