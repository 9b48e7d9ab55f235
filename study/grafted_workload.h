// A profile made complete: its measured times on a captured or generated step of the same network.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

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

// What load_workload gives, grafted onto `settings.onto` where that is not "". Else an ExecutionTrace of one of a
// profile's iterations, whose join leaves the others without dataflow, is what the profile is grafted onto: it stands
// for each, so that both together know no less than it alone. Where that fails the trace is as joined, and a note says
// why. Throws as load_workload and grafted_workload do. REQUIRES: `paths` is not empty.
Workload complete_workload(const std::vector<std::filesystem::path>& paths,
                           const std::vector<std::filesystem::path>& execution_traces, const JobSettings& job,
                           const GraftSettings& settings, Watch* watch = nullptr);

}  // namespace memwall
