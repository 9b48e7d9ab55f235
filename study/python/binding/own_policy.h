// Planners and pagers that are Python functions and objects.
#pragma once

#include <pybind11/pybind11.h>

namespace memwall {

// add_planner(name, function) and add_pager(name, function). Each is a policy under its name from then on; under a name
// that Python gave before the new function takes the place of the old one. Throws UsageError for a name that memwall
// has itself, or that no policy can have. REQUIRES: nothing runs meanwhile.
void add_own_policies(pybind11::module_& module);

}  // namespace memwall
