// Planners and pagers that are Python functions and objects.
#pragma once

#include <pybind11/pybind11.h>

namespace memwall {

// add_planner(name, sentence) and add_pager(name, sentence): from then on a policy of that name asks what Python keeps
// under it (memwall.own.functions). Throw UsageError for a name that there is already, or that no policy can have.
// REQUIRES: nothing runs meanwhile.
void add_own_policies(pybind11::module_& module);

}  // namespace memwall
