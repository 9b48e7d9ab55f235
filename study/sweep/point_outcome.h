// A point's outcome: the fields of its run, or the sentence by which it was refused.
#pragma once

#include <exception>

#include "study/scenario.h"
#include "study/study.h"
#include "study/sweep/sweep_journal.h"

namespace memwall {

struct PointSettings {
  bool needs_all = false;    // fields of the whole JSON, not the quick ones alone (study/sweep/outcome_fields.h)
  bool accept_gaps = false;  // a capture that asks first (Completeness) is no error
};

// Runs the scenario. Never throws what a run throws: that is the record's error.
PointRecord point_outcome(Study& study, const Scenario& scenario, const PointSettings& settings);

// Of an error that kept a point from running. `cause`: "usage", "input", "infeasible", "internal".
PointRecord failed_point(const char* cause, const std::exception& error);

}  // namespace memwall
