// What a profiler would show around a run's calls: operators, modules, backward and the optimizer's step, as ranges of
// a host thread.
//
// A run knows an op's operator, module and phase, not where an operator's call began and ended: what follows each
// other with the same ones is one range, from the first call to the end of the last. A kernel that comes again begins
// a new operator.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

struct HostRange {
  enum class Kind : std::uint8_t { backward, optimizer, module, operation };
  Kind kind = Kind::operation;
  StringId name = 0;  // of a module or an operator
  std::uint16_t thread = 0;
  Time begin{}, end{};
};

// Of one rank. Those of a thread nest: phases hold modules, these operators; no one crosses the beginning of a step.
std::vector<HostRange> host_ranges(const Run& run, std::uint16_t rank);

}  // namespace memwall
