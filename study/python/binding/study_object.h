// A study as a Python object: what holds a step that is read, and answers scenarios of it.
#pragma once

#include <pybind11/pybind11.h>

namespace memwall {

// The types Study, Sweep, Fit and Plan. Functions run without Python's lock, and may be called from several threads.
void add_study(pybind11::module_& module);

}  // namespace memwall
