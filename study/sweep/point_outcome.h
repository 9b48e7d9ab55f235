// A point's outcome: the fields of its run, or the sentence by which it was refused.
#pragma once

#include <exception>
#include <string_view>

#include "study/layout/folded_scenarios.h"
#include "study/scenario.h"
#include "study/study.h"
#include "study/sweep/sweep_journal.h"

namespace memwall {

struct PointSettings {
  bool needs_all = false;    // fields of the whole JSON, not the quick ones alone (study/sweep/outcome_fields.h)
  bool accept_gaps = false;  // a capture that asks first (Completeness) is no error
  // Jobs over many GPUs are folded where they can be; null = all are written out. Then of all fields there are those
  // that is_folded_field() says, and the critical path's. Not owned.
  FoldedScenarios* folded = nullptr;
};

// Runs the scenario. Never throws what a run throws: that is the record's error.
PointRecord point_outcome(Study& study, const Scenario& scenario, const PointSettings& settings);

// Does a folded job say it, by its full name? Such a point has the field "folded", 1, besides.
bool is_folded_field(std::string_view name);

// Of an error that kept a point from running. `cause`: "usage", "input", "infeasible", "internal".
PointRecord failed_point(const char* cause, const std::exception& error);

}  // namespace memwall
