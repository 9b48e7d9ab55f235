// A run as a Python object.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

struct AnsweredRun {
  Run run;
  std::vector<std::string> notes{};  // beside those of the run
};

// The type Run and read_run().
void add_run(pybind11::module_& module);

}  // namespace memwall
