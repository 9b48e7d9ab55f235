// Overrides without which a run shows the same, found by running without them: for those of which
// study/overrides/override_check.h, which looks at one run alone, cannot tell. Internal to study/.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

// `run`'s scenario under other settings of its machine, not recorded, with step_bounds if that is asked for. Nothing
// where it is not worth the time, or makes no sense.
using RunUnder = std::function<std::optional<Run>(const std::vector<std::string>& settings, bool with_bounds)>;

// One sentence for each setting of run.changes.overrides that run.warnings says nothing of and without which times,
// memory in use, energy, price, wear of drives and interval are the same.
std::vector<std::string> effectless_overrides(const Run& run, const RunUnder& run_under);

}  // namespace memwall
