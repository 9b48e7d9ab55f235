// Memory snapshots as Python objects.
#pragma once

#include <pybind11/pybind11.h>

namespace memwall {

// The type Snapshot.
void add_snapshot(pybind11::module_& module);

}  // namespace memwall
