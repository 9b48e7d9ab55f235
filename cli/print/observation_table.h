// What was measured of a step, and what of it goes into its plan.
#pragma once

#include <string>
#include <vector>

#include "cli/print/table.h"
#include "study/observation.h"

namespace memwall {

// `budget`: that was asked for, as a reader shall read it; `planned_for`: what is left of it. Sentences that are "" are
// to be left out.
std::vector<std::string> observation_sentences(const Observation& observation, const std::string& budget,
                                               Bytes planned_for);
Table observation_table(const Observation& observation);

}  // namespace memwall
