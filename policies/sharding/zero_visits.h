// When stage 3 needs which parameter whole: units, visits, and for how long each is kept.
// Decides only; zero_gathers.h acts on it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "policies/sharding/zero_settings.h"
#include "policies/sharding/zero_survey.h"
#include "sim/trace/trace.h"

namespace memwall {

// A run of ops of one unit in one phase, in host order.
struct UnitVisit {
  std::string unit;
  std::vector<OpId> ops;              // those that use parameters; ascending
  std::vector<StorageId> parameters;  // needed whole: the unit's own and what else its ops use; ascending
  std::set<std::uint16_t> streams;    // of the ops
};

// A parameter gathered before visit `first` and kept until after visit `last`.
struct Tenure {
  StorageId parameter = kNoStorage;
  std::size_t first = 0, last = 0;
};

struct VisitPlan {
  std::vector<UnitVisit> visits;
  std::vector<Tenure> tenures;  // by first visit, then parameter
  std::size_t units = 0;
};

VisitPlan plan_visits(const Trace& trace, const ZeroSurvey& survey, const ZeroSettings& settings);

// Is there an update between the two visits?
bool updated_between(const ZeroSurvey& survey, const UnitVisit& before, const UnitVisit& after);

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
