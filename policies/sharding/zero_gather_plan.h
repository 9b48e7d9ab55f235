// When stage 3 needs which parameter whole: units, executions, and for how long each is kept.
// Decides only; zero_gathers.h acts on it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "policies/sharding/zero_settings.h"
#include "policies/sharding/zero_analysis.h"
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

// Is there an update between the two executions?
bool updated_between(const ZeroAnalysis& analysis, const UnitExecution& before, const UnitExecution& after);

// The unit that module `path` belongs to: the outermost repeated block, which is a numbered component that
// has a sibling with the same kinds of modules inside ("layers.3", "Block_3"; not the "Sequential_0" of
// convolutions beside the "Sequential_1" of linear layers), else the whole path. `paths`: all of the trace.
class ModuleUnits {
 public:
  explicit ModuleUnits(const std::set<std::string>& paths);
  std::string unit(const std::string& path) const;

 private:
  std::set<std::string> repeated_;  // prefixes that are repeated blocks
};

}  // namespace memwall
