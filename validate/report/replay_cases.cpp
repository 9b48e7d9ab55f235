#include "validate/report/replay_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "models/hw/kernel_cost.h"
#include "models/workload/import/bytes/file_text.h"
#include "sim/error.h"
#include "traces/run/file/run_file.h"
#include "validate/replay/schedule.h"
#include "validate/report/measured_run.h"
#include "validate/report/tolerance.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestSchedule = std::size_t{1} << 30;

// NAME of "NAME.schedule" and "NAME.schedule.gz", "" of anything else.
std::string case_of(const fs::path& file) {
  std::string name = file.filename().string();
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  return name.ends_with(".schedule") ? name.substr(0, name.size() - 9) : "";
}

std::optional<fs::path> execution_beside(const fs::path& folder, const std::string& name) {
  for (const char* suffix : {".execution.csv", ".execution.csv.gz"})
    if (const fs::path path = folder / (name + suffix); fs::exists(path)) return path;
  return std::nullopt;
}

// The stand-alone times of all kernels together, and what the machine file makes of their FLOPs and bytes.
ValidationRow kernel_pricing_row(const Trace& schedule, const Execution& execution, const Machine& machine,
                                 std::string_view backend) {
  ValidationRow row;
  row.rung = "replay";
  row.metric = "kernels alone, priced";
  row.unit = "s";
  for (OpId id = 0; id < schedule.ops.size(); ++id) {
    const Op& op = schedule.ops[id];
    if (op.kind != OpKind::kernel || (op.flops <= 0 && op.bytes <= 0)) continue;
    row.measured += to_seconds(execution.alone[id]);
    row.predicted += to_seconds(kernel_duration(machine, op));
  }
  judge(row, tolerance_of(ToleranceKind::kernel_pricing, backend));
  return row;
}

void keep_runs(const Run& measured, const Run& simulated, const std::string& name, const fs::path& folder) {
  if (folder.empty()) return;
  std::error_code error;
  fs::create_directories(folder, error);
  if (!fs::is_directory(folder))
    throw UsageError(fmt::format("--runs: the folder {} cannot be made ({}).", folder.string(),
                                 error ? error.message() : "something else has this name"));
  write_run(measured, folder / (name + ".measured.h5"));
  write_run(simulated, folder / (name + ".simulated.h5"));
}

ReplayCase compare_files(const fs::path& file, const Machine& machine, const fs::path& runs) {
  ReplayCase result;
  result.name = case_of(file);
  const auto path = execution_beside(file.parent_path(), result.name);
  if (!path) return result;
  const std::string text = read_file_text(file, kLargestSchedule);
  const Trace schedule = parse_schedule(text, file.filename().string());
  const Execution execution = parse_execution(read_file_text(*path, kLargestSchedule), path->filename().string());
  if (const std::string hash = schedule_hash(text); execution.schedule_hash != hash)
    throw InputError(fmt::format("{}: found an execution of a schedule with hash {}; expected {}, that of {}.",
                                 path->filename().string(), execution.schedule_hash, hash, file.filename().string()));
  return compare_replay(result.name, schedule, execution, machine, runs);
}

bool is_tie(const ReplayCase& a, const ReplayCase& b) {
  const double difference = a.measured - b.measured;
  return difference < 0 ? -difference <= std::max(a.high - a.measured, b.measured - b.low)
                        : difference <= std::max(a.measured - a.low, b.high - b.measured);
}

}  // namespace

ReplayCase compare_replay(const std::string& name, const Trace& schedule, const Execution& execution,
                          const Machine& machine, const fs::path& runs) {
  ReplayCase result;
  result.name = name;
  result.executed = true;
  result.backend = value_of(execution.environment, "backend");
  result.date = value_of(execution.environment, "date");
  const Run measured = measured_run(schedule, execution, machine);
  const Run simulated = simulated_run(schedule, execution, machine);
  result.measured = to_seconds(measured.result.end);
  result.predicted = to_seconds(simulated.result.end);
  // The rows are those of one pass; ties in a ranking are judged by the totals of all.
  if (const Duration total = execution.totals.at(execution.chosen);
      std::abs(to_seconds(total) - result.measured) > 1e-6)
    throw InputError(fmt::format("The execution of \"{}\" ends after {} ns; expected {} ns, the total of pass {}.",
                                 name, measured.result.end.count() / 1000, total.count() / 1000, execution.chosen));
  result.low = result.high = result.measured;
  for (const Duration total : execution.totals) {
    result.low = std::min(result.low, to_seconds(total));
    result.high = std::max(result.high, to_seconds(total));
  }
  result.rows = compare_execution(measured, simulated, result.backend);
  result.rows.push_back(kernel_pricing_row(schedule, execution, machine, result.backend));
  for (ValidationRow& row : result.rows) {
    row.case_name = name;
    row.date = result.date;
  }
  keep_runs(measured, simulated, name, runs);
  return result;
}

std::vector<ReplayCase> compare_replays(const fs::path& folder, const Machine& machine, const fs::path& runs) {
  std::vector<ReplayCase> cases;
  if (!fs::is_directory(folder)) return cases;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (!case_of(entry.path()).empty()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    if (!cases.empty() && cases.back().name == case_of(file))
      throw InputError(fmt::format("{}: the schedule is there twice, compressed and not; expected one of the two.",
                                   file.filename().string()));
    cases.push_back(compare_files(file, machine, runs));
  }
  return cases;
}

std::vector<ValidationRow> ranking_rows(const std::vector<ReplayCase>& cases) {
  std::map<std::string, std::vector<const ReplayCase*>> groups;
  for (const ReplayCase& c : cases)
    if (c.executed)
      groups[c.name.find('.') == std::string::npos ? "" : c.name.substr(0, c.name.find('.'))].push_back(&c);
  std::vector<ValidationRow> rows;
  for (const auto& [name, group] : groups) {
    double pairs = 0, right = 0;
    for (std::size_t i = 0; i < group.size(); ++i)
      for (std::size_t j = i + 1; j < group.size(); ++j) {
        const ReplayCase &a = *group[i], &b = *group[j];
        ++pairs;
        right += is_tie(a, b) || (a.measured < b.measured) == (a.predicted < b.predicted);
      }
    if (pairs == 0) continue;
    ValidationRow row;
    row.rung = "ranking";
    row.case_name = name.empty() ? "replay" : name;
    row.metric = fmt::format("order of {} schedules by step time", group.size());
    row.unit = "share";
    row.measured = 1;
    row.predicted = right / pairs;
    row.date = group.front()->date;
    judge(row, tolerance_of(ToleranceKind::ranking, group.front()->backend));
    rows.push_back(row);
  }
  return rows;
}

}  // namespace memwall
