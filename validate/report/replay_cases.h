// Schedules that were executed, found in a folder and compared with what the simulator says of them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/machine/machine.h"
#include "validate/replay/execution.h"
#include "validate/report/validation.h"

namespace memwall {

struct ReplayCase {
  std::string name;                    // of the files: NAME.schedule, NAME.execution.csv, either with .gz
  bool executed = false;               // else the rest is empty
  double measured = 0, predicted = 0;  // step times, seconds
  double low = 0, high = 0;            // of the passes that were timed
  std::string backend, date;
  std::vector<ValidationRow> rows;  // without machine
};

// By name. With `runs` each case leaves NAME.measured.h5 and NAME.simulated.h5 there. Throws InputError: unreadable,
// or the execution is of another schedule.
std::vector<ReplayCase> compare_replays(const std::filesystem::path& folder, const Machine& machine,
                                        const std::filesystem::path& runs);
// One case in memory.
ReplayCase compare_replay(const std::string& name, const Trace& schedule, const Execution& execution,
                          const Machine& machine, const std::filesystem::path& runs);

// A row per group of cases (what stands before the first "." of their names): the share of pairs whose order of
// step times is predicted as measured. A pair of which one was measured within the other's spread is a tie, and
// no order of it is wrong. Groups of one case have no order.
std::vector<ValidationRow> ranking_rows(const std::vector<ReplayCase>& cases);

}  // namespace memwall
