// Runs of many kinds, for tests of what reads runs: small enough to look at every row.
#pragma once

#include <string>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

struct NamedRun {
  std::string name;
  Run run;
};

// GPT steps, one of them long enough for chunked columns; pagers on both clocks; several ranks that meet; random
// traces with copies over every engine; ops without calls, of no length, without names; a run of no op at all.
std::vector<NamedRun> varied_runs();

// Of about `layers` x 40 ops.
Run gpt_run(int layers, int steps = 2);

}  // namespace memwall
