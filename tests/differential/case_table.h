// The cases of a family as a table that people read (markdown), and the figures that the targets are about.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "tests/differential/case_run.h"

namespace memwall {

// Simulated / executed - 1, of each part's peak.
std::array<double, kStepParts> peak_errors(const CaseRun& run);

// How many differences each cause explains; "" those that none does.
std::map<std::string, std::size_t> causes_of(const CaseRun& run);

std::string table_of(const std::vector<CaseRun>& runs);

}  // namespace memwall
