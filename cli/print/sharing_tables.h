// What `memwall forecast --share` prints.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/print/table.h"
#include "models/workload/forecast/sharing.h"

namespace memwall {

struct SharingReport {
  std::vector<SharedJob> jobs;
  Bytes capacity = 0;
  std::optional<Machine> machine;
  StaticSplit equal, by_peak;
  DynamicShare dynamic;
  std::optional<MigShare> mig;  // of a machine that has MIG profiles
  bool some_way_fits = false;   // for all jobs at once
  std::vector<std::string> notes;
};

// `steps`: of each job in the dynamic schedule.
SharingReport report_sharing(const std::vector<SharedJob>& jobs, Bytes capacity, const std::optional<Machine>& machine,
                             int steps);

std::vector<Table> sharing_tables(const SharingReport& report);

}  // namespace memwall
