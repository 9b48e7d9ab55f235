// Sweeps and fits as Python objects.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "study/python/binding/study_with_watch.h"

namespace memwall {

using StudyType = pybind11::class_<StudyWithWatch, std::shared_ptr<StudyWithWatch>>;

// The types Sweep and Fit, and Study's functions that make them.
void add_sweep(pybind11::module_& module, StudyType& study);

}  // namespace memwall
