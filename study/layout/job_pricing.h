// What decides how long the ops of a folded job take: the machine, and by what durations are multiplied.
#pragma once

#include <vector>

#include "sim/machine/machine.h"
#include "sim/trace/scale.h"
#include "sim/trace/trace.h"

namespace memwall {

struct JobPricing {
  const Machine& machine;             // not owned
  std::vector<ScaleFactors> scale{};  // of all ranks alike, as `--scale` says them

  // The joined programs of ranks, those in unequal places apart, with their times. REQUIRES: measured_nowhere(joined).
  Trace priced(Trace joined) const;
  // A hit in the caching allocator.
  Duration allocator_call() const;
};

}  // namespace memwall
