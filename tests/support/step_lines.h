// What two traces of one program must agree in: op by op, and what lives when.
#pragma once

#include <string>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

// One line per op: kind and bytes of an allocation or free; operator, class, type, phase, FLOPs, bytes and number of
// storages of what runs.
std::vector<std::string> lines_of(const Trace& trace);

struct SavedAndPeak {
  std::vector<Bytes> saved;  // what was made in the step and lives where backward begins, sorted
  Bytes peak = 0;            // on the device
};
SavedAndPeak memory_of(const Trace& trace);

}  // namespace memwall
