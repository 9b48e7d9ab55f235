// A profile made complete: its measured times on a captured or generated step of the same network.
#pragma once

#include <string>

#include "study/workload_file.h"

namespace memwall {

struct GraftSettings {
  std::string onto;           // what load_workload takes: a capture on fake tensors, a trace, a network's name
  double most_unpaired = 20;  // per cent of the device's time that may have no partner in the other program
};

// A complete step of another batch is what the profile becomes at that batch: grafted at the profile's own, as its
// shapes say, and predicted as --policy batch:N does. The profile's machine prices what was not measured; where it is a
// network's name without a precision, the profile's is taken. What was concluded stands in the result's decisions and
// in its trace's notes. Throws UsageError where the profile's machine is not known, where more than `most_unpaired` has
// no partner or less than half of what was measured has one by its operator (it is another network, or another recipe),
// and as graft() and load_workload do.
Workload grafted_workload(Workload profile, const GraftSettings& settings, Watch* watch = nullptr);

}  // namespace memwall
