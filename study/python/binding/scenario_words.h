// A scenario as a dictionary: the members of study/scenario.h by their names.
#pragma once

#include <pybind11/pybind11.h>

#include "study/scenario.h"

namespace memwall {

pybind11::dict words_of(const Scenario& scenario);

// What is not named has its default. Throws UsageError for a name that no scenario has; Python's TypeError for a value
// of another type.
Scenario scenario_of(const pybind11::dict& words);

}  // namespace memwall
