// Tables as Python objects.
#pragma once

#include <pybind11/pybind11.h>

namespace memwall {

// The type Columns: a ColumnTable that Arrow's readers take without a copy.
void add_columns(pybind11::module_& module);

}  // namespace memwall
