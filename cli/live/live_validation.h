// Validation on the computer at hand: measure, calibrate, execute four schedules. Leaves a folder laid out as
// those of validate/data, so that keeping it is copying it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/print/table.h"
#include "validate/measurement/scratch_area.h"
#include "validate/report/validation.h"

namespace memwall {

struct LiveSettings {
  std::string backend = "host";  // or "cuda"
  std::string workload;          // "" = traces/samples/gpt_124m.mwt of the source tree
  std::string output;            // folder; "" = a temporary one, removed when the result is
  std::string scratch;           // folder for files; "" = the system's for temporary files
  double seconds = 240;          // of microbenchmarks
};

struct LiveResult {
  std::filesystem::path folder;          // results.csv, machine.textproto, replay/
  std::vector<std::string> notes;        // what was scaled, what could not be executed
  bool complete = true;                  // every schedule was executed
  std::shared_ptr<ScratchArea> scratch;  // holds `folder` where no output was asked for
};

// Tells on stderr what it does. Throws UsageError and InputError; std::runtime_error where the hardware fails.
LiveResult measure_and_execute(const LiveSettings& settings);

// Step times of the executed schedules, in the order in which they were measured, fastest first.
Table live_table(const std::vector<ValidationRow>& rows);

}  // namespace memwall
