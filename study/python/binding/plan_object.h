// Memory plans as Python objects.
#pragma once

#include "study/python/binding/sweep_object.h"

namespace memwall {

// The type Plan, and Study's function that makes one.
void add_plan(pybind11::module_& module, StudyType& study);

}  // namespace memwall
