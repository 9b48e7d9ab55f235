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
  Phase phase = Phase::unknown;
  std::vector<OpId> ops;  // those that use parameters; ascending
  // Needed whole, ascending: the unit's own and what else its ops use. Of a re-run that reads no more than half of the
  // unit, only what it reads: the re-run of a norm needs no linear layer.
  std::vector<StorageId> parameters;
  bool whole = true;                // all of the unit's own are among them
  std::set<std::uint16_t> streams;  // of the ops
  // The unit's backward, which re-runs of single ops may interrupt: executions of one number keep what they gathered.
  // 0: none.
  std::size_t turn = 0;
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
  // The reuse distance from which on backward finds what the re-run of a unit before it has gathered; 0: no unit is
  // re-run, or each right before its backward.
  Bytes distance_over_recompute = 0;
};

GatherPlan plan_gathers(const Trace& trace, const ZeroAnalysis& analysis, const ZeroSettings& settings);

}  // namespace memwall
