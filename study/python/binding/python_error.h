// Errors of memwall as memwall.Error, with the sentences that the command line prints.
#pragma once

#include <pybind11/pybind11.h>

namespace memwall {

// Whatever functions of `module` throw: sim/error.h's types have a `cause` each ("usage", "input", "infeasible"), what
// is memwall's own fault "internal".
void translate_errors(const pybind11::module_& module);

}  // namespace memwall
