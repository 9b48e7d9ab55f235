// Predicted against measured: rows of a table, each with its tolerance and verdict. Recomputed from committed
// measurements, without the hardware.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

enum class ValidationStatus : std::uint8_t {
  within,        // of the tolerance
  outside,       // memwall validate ends with exit code 4
  accepted,      // outside, and explained in validate/DEVIATIONS.md under this case and metric
  not_measured,  // nobody has measured it yet
  reported       // no tolerance is claimed
};
std::string to_string(ValidationStatus status);  // "within", "outside", ..., "not measured yet"

struct ValidationRow {
  std::string
      rung;  // "microbenchmark", "contention", "replay", "ranking", "pytorch same kernels", "pytorch changed kernels"
  std::string machine;  // folder of validate/data
  std::string case_name;
  std::string metric;  // "step time", "backward", "pcie_h2d busy", "peak allocated", "overlap"
  std::string unit;    // "s", "B", "B/s", "share"
  double measured = 0, predicted = 0;
  double tolerance = 0;  // of the error; 0 = none claimed
  ValidationStatus status = ValidationStatus::not_measured;
  std::string date;
  // Relative; of shares, which may be 0, the difference.
  double error() const {
    if (unit == "share") return predicted - measured;
    return measured == 0 ? 0 : predicted / measured - 1;
  }
};

struct ValidationSettings {
  std::vector<std::string> machine_settings;  // --set, for the negative control: half a bandwidth must be seen
  std::filesystem::path deviations;           // validate/DEVIATIONS.md; "" = none is accepted
  std::filesystem::path runs;                 // folder for CASE.measured.h5 and CASE.simulated.h5; "" = none
};

// All rows of one folder validate/data/MACHINE: results.csv is calibrated anew and must give machine.textproto,
// schedules (replay/CASE.schedule, CASE.execution.csv, gzip-compressed or not) are re-priced and simulated, PyTorch
// variants are predicted from their baseline. Throws InputError.
std::vector<ValidationRow> validate_folder(const std::filesystem::path& folder, const ValidationSettings& settings);

// The rows of every folder in `data`, and "not measured yet" for machines that are wanted and have none.
std::vector<ValidationRow> validate_all(const std::filesystem::path& data, const ValidationSettings& settings);

// Replay rows of one case: step, phases, each link, copies and file I/O, peaks, overlap; what each means stands in
// docs/validation.md. `backend` ("cuda", "host") chooses the tolerances. Machine, case and date are left to the caller.
std::vector<ValidationRow> compare_execution(const Run& measured, const Run& simulated, std::string_view backend);

}  // namespace memwall
