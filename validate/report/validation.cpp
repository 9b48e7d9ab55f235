#include "validate/report/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "models/hw/machine_file.h"
#include "sim/error.h"
#include "validate/calibrate/calibrate.h"
#include "validate/measurement/results_file.h"
#include "validate/report/contention.h"
#include "validate/report/deviations.h"
#include "validate/report/microbenchmark_rows.h"
#include "validate/report/pytorch.h"
#include "validate/report/replay_cases.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

// Machines that the project wants to be compared with.
constexpr const char* kWanted[] = {"h200-sxm-141gb"};

ValidationRow not_measured(const std::string& rung, const std::string& case_name, const std::string& metric) {
  ValidationRow row;
  row.rung = rung;
  row.case_name = case_name;
  row.metric = metric;
  return row;
}

void append(std::vector<ValidationRow>& rows, std::vector<ValidationRow> more) {
  rows.insert(rows.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// Not measured: rows that stand for what would be there.
std::vector<ValidationRow> rows_of_unmeasured(const std::string& machine) {
  std::vector<ValidationRow> rows{not_measured("microbenchmark", "transfers and kernels", "all"),
                                  not_measured("replay", "resident, offload, checkpointing", "step time"),
                                  not_measured("ranking", "replay", "order of schedules by step time")};
  append(rows, pytorch_rows(machine, {}));
  for (ValidationRow& row : rows) row.machine = machine;
  return rows;
}

std::vector<ValidationRow> microbenchmarks(const fs::path& folder, const MeasurementSet& measurements,
                                           const Machine& machine, const std::string& backend) {
  const fs::path file = folder / "machine.textproto";
  const Calibration calibration = calibrate(measurements, {load_machine(file.string()).name, ""});
  std::vector<ValidationRow> rows{machine_file_row(calibration, file)};
  append(rows, transfer_rows(measurements, machine, backend));
  append(rows, kernel_rows(measurements, machine, backend));
  append(rows, call_rows(measurements, machine, backend));
  append(rows, residual_rows(calibration, backend));
  for (ValidationRow& row : rows) row.date = value_of(measurements.environment, "date");
  return rows;
}

std::vector<ValidationRow> replays(const fs::path& folder, const Machine& machine, const ValidationSettings& settings) {
  const fs::path runs = settings.runs.empty() ? fs::path() : settings.runs / folder.filename();
  const std::vector<ReplayCase> cases = compare_replays(folder / "replay", machine, runs);
  std::vector<ValidationRow> rows;
  for (const ReplayCase& c : cases) {
    append(rows, c.rows);
    if (!c.executed) rows.push_back(not_measured("replay", c.name, "step time"));
  }
  if (cases.empty()) rows.push_back(not_measured("replay", "all", "step time"));
  append(rows, ranking_rows(cases));
  return rows;
}

}  // namespace

std::string to_string(ValidationStatus status) {
  constexpr const char* names[] = {"within", "outside", "accepted", "not measured yet", "reported"};
  return names[static_cast<std::size_t>(status)];
}

std::vector<ValidationRow> validate_folder(const fs::path& given, const ValidationSettings& settings) {
  // "data/x/" has no last part.
  const fs::path folder = given.has_filename() ? given : given.parent_path();
  if (!fs::is_directory(folder)) throw InputError(fmt::format("{}: there is no such folder.", given.string()));
  if (!fs::exists(folder / "results.csv"))
    throw InputError(
        fmt::format("{}: found no results.csv; expected a folder as memwall-bench writes it.", folder.string()));
  if (!fs::exists(folder / "machine.textproto"))
    throw InputError(fmt::format("{}: found no machine.textproto; `memwall calibrate {} -o {}` makes it.",
                                 folder.string(), folder.string(), (folder / "machine.textproto").string()));
  const MeasurementSet measurements = read_results(folder);
  const std::string backend = value_of(measurements.environment, "backend");
  const Machine machine = load_machine((folder / "machine.textproto").string(), settings.machine_settings);
  std::vector<ValidationRow> rows = microbenchmarks(folder, measurements, machine, backend);
  std::vector<ValidationRow> contended = contention_rows(
      contended_rates(measurements, machine, load_machine((folder / "machine.textproto").string())), backend);
  for (ValidationRow& row : contended) row.date = value_of(measurements.environment, "date");
  append(rows, std::move(contended));
  append(rows, replays(folder, machine, settings));
  // A computer that stands in for a GPU runs no PyTorch on it.
  if (backend != "host" || fs::exists(folder / "pytorch")) append(rows, validate_pytorch(folder, settings));
  for (ValidationRow& row : rows) row.machine = folder.filename().string();
  accept_deviations(read_deviations(settings.deviations), rows);
  return rows;
}

std::vector<ValidationRow> validate_all(const fs::path& data, const ValidationSettings& settings) {
  std::vector<fs::path> folders;
  if (fs::is_directory(data))
    for (const auto& entry : fs::directory_iterator(data))
      if (entry.is_directory()) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  std::vector<ValidationRow> rows;
  for (const fs::path& folder : folders) append(rows, validate_folder(folder, settings));
  for (const char* wanted : kWanted) {
    const bool measured = std::any_of(folders.begin(), folders.end(),
                                      [&](const fs::path& folder) { return folder.filename() == wanted; });
    if (!measured) append(rows, rows_of_unmeasured(wanted));
  }
  return rows;
}

}  // namespace memwall
