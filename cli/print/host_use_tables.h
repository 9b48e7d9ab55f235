// What the ranks of a host do to each other and to its memory, as `memwall run` prints it.
#pragma once

#include <string>
#include <vector>

#include "cli/print/table.h"
#include "traces/run/analysis/summary.h"

namespace memwall {

// A row of the overview.
struct HostFigure {
  const char* what;
  Cell value;
  std::string includes;
};

// The first step, the step without the other ranks of the host, and the cores that several ranks, or more than there
// are, keep busy: those of them that say something.
std::vector<HostFigure> host_figures(const RunSummary& s);

// Memory of each host by cause, all of its ranks together.
Table host_memory_table(const RunSummary& s);

}  // namespace memwall
