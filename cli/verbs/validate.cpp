// memwall validate: predicted against measured, from committed measurements or live.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>

#include "cli/live/live_validation.h"
#include "cli/print/contention_table.h"
#include "cli/print/published_tables.h"
#include "cli/print/table.h"
#include "cli/print/transfer_tables.h"
#include "cli/print/validation_table.h"
#include "cli/verbs/verbs.h"
#include "models/hw/machine_file.h"
#include "models/workload/import/bytes/file_text.h"
#include "sim/error.h"
#include "sim/files/data_folder.h"
#include "study/overrides/idle_settings.h"
#include "validate/measurement/results_file.h"
#include "validate/published/fit_constants.h"
#include "validate/report/contention.h"
#include "validate/report/validation.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

struct ValidateOptions {
  std::vector<std::string> folders, settings;
  std::string runs, published, transfer, format = "table";
  std::vector<std::string> tables;
  bool readme = false, docs = false, live = false, strict = false, fit = false;
  LiveSettings measured;
};

fs::path measurement_folder() {
  return data_folder("MEMWALL_VALIDATION_DATA", "validate/data", MEMWALL_VALIDATION_DATA);
}

ValidationSettings settings_of(const ValidateOptions& o) {
  return {.machine_settings = o.settings, .deviations = measurement_folder() / ".." / "DEVIATIONS.md", .runs = o.runs};
}

int verdict(const std::vector<ValidationRow>& rows) {
  const std::vector<std::string> sentences = outside_sentences(rows);
  for (const std::string& sentence : sentences) print_error("memwall validate: outside its tolerance: {}\n", sentence);
  return sentences.empty() ? 0 : kOutside;
}

std::vector<ValidationRow> committed_rows(const ValidateOptions& o, const ValidationSettings& settings) {
  std::vector<ValidationRow> rows;
  if (o.folders.empty()) {
    if (!fs::is_directory(measurement_folder()))
      throw UsageError(
          fmt::format("{}: there is no such folder of measurements; MEMWALL_VALIDATION_DATA names another.",
                      measurement_folder().string()));
    rows = validate_all(measurement_folder(), settings);
  }
  for (const std::string& folder : o.folders) {
    const std::vector<ValidationRow> more = validate_folder(folder, settings);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

// Overrides without which every row is the same. `rows_of` makes them anew.
void tell_idle_settings(const ValidateOptions& o, const std::vector<ValidationRow>& rows,
                        const std::function<std::vector<ValidationRow>(const ValidationSettings&)>& rows_of) {
  const auto rows_under = [&](const std::vector<std::string>& settings) {
    ValidationSettings other = settings_of(o);
    other.machine_settings = settings;
    other.runs.clear();
    return to_text(validation_table(rows_of(other)), Format::json);
  };
  for (const std::string& sentence :
       idle_settings(o.settings, to_text(validation_table(rows), Format::json), "every row", rows_under))
    print_error("memwall validate: {}\n", sentence);
}

int validate_committed(const ValidateOptions& o) {
  const Format format = parse_format(o.format);
  const std::vector<ValidationRow> rows = committed_rows(o, settings_of(o));
  tell_idle_settings(o, rows, [&](const ValidationSettings& settings) { return committed_rows(o, settings); });
  if (o.readme) {
    const fs::path readme = measurement_folder() / ".." / "README.md";
    print(with_validation_table(read_file_text(readme), rows, readme.filename().string()));
  } else {
    print(to_text(validation_table(rows), format));
  }
  return verdict(rows);
}

Table contention_of(const LiveResult& result, const std::vector<std::string>& machine_settings) {
  const std::string machine = (result.folder / "machine.textproto").string();
  return contention_table(
      contended_rates(read_results(result.folder), load_machine(machine, machine_settings), load_machine(machine)));
}

int validate_live(const ValidateOptions& o) {
  const Format format = parse_format(o.format);
  const LiveResult result = measure_and_execute(o.measured);
  std::vector<ValidationRow> rows = validate_folder(result.folder, settings_of(o));
  tell_idle_settings(o, rows,
                     [&](const ValidationSettings& settings) { return validate_folder(result.folder, settings); });
  std::vector<Table> tables{live_table(rows), contention_of(result, o.settings), validation_table(rows)};
  print(format == Format::table || format == Format::md ? to_text(tables, format) : to_text(tables.back(), format));
  for (const std::string& note : result.notes) print_error("memwall validate: {}\n", note);
  const int code = verdict(rows);
  return o.strict && (code != 0 || !result.complete) ? kOutside : 0;
}

// docs/accuracy.md of the source tree, with its tables made anew.
std::string accuracy_page(const std::vector<Table>& tables) {
  const fs::path page = measurement_folder() / ".." / ".." / "docs" / "accuracy.md";
  return between_marks(read_file_text(page), to_text(tables, Format::md), page.filename().string());
}

// Prints what fitted_constants() should say.
int fit_published(const std::vector<PublishedCase>& cases, Format format) {
  print(to_text(fitted_table(fit_tables(cases)), format));
  return 0;
}

int validate_published(const ValidateOptions& o) {
  const Format format = parse_format(o.format);
  std::vector<PublishedCase> cases = published_cases(o.published);
  if (!o.tables.empty()) {
    for (const std::string& table : o.tables)
      if (std::none_of(cases.begin(), cases.end(), [&](const PublishedCase& c) { return c.table == table; }))
        throw UsageError(fmt::format("--table {}: no such table is in {}.", table, o.published));
    std::erase_if(cases, [&](const PublishedCase& c) {
      return std::find(o.tables.begin(), o.tables.end(), c.table) == o.tables.end();
    });
  }
  if (o.fit) return fit_published(cases, format);
  const std::vector<Table> tables = published_tables(predict(cases));
  print(o.docs ? accuracy_page(tables) : to_text(tables, format));
  return 0;
}

// As --published: docs/transfer.md of the source tree.
int validate_transfer(const ValidateOptions& o) {
  const Format format = parse_format(o.format);
  const std::vector<TransferRow> rows = transfer_rows(o.transfer, measurement_folder() / ".." / "transfer");
  const std::vector<Table> tables = transfer_tables(transferred_rows(rows), transferred_rows(rows, TransferLoad::jobs));
  const fs::path page = measurement_folder() / ".." / ".." / "docs" / "transfer.md";
  print(o.docs ? between_marks(read_file_text(page), to_text(tables, Format::md), page.filename().string())
               : to_text(tables, format));
  return 0;
}

int run(const ValidateOptions& o) {
  if (o.docs && o.published.empty() && o.transfer.empty())
    throw UsageError(
        "--markdown-docs writes down how published tables are met; expected --published FOLDER or --transfer FOLDER "
        "beside it.");
  if ((o.fit || !o.tables.empty()) && o.published.empty())
    throw UsageError("--fit and --table belong to published tables; expected --published FOLDER beside them.");
  if (o.docs && (o.fit || !o.tables.empty()))
    throw UsageError("--markdown-docs writes down all tables; expected neither --fit nor --table beside it.");
  if (!o.transfer.empty()) {
    if (o.live || o.readme || !o.folders.empty() || !o.settings.empty() || !o.runs.empty() || !o.published.empty())
      throw UsageError(
          "--transfer compares transferred measurements; expected only --format or --markdown-docs beside it.");
    return validate_transfer(o);
  }
  if (!o.published.empty()) {
    if (o.live || o.readme || !o.folders.empty() || !o.settings.empty() || !o.runs.empty())
      throw UsageError(
          "--published compares with published tables; expected only --format or --markdown-docs beside it.");
    return validate_published(o);
  }
  if (o.live && (!o.folders.empty() || o.readme))
    throw UsageError("--live measures anew; expected neither folders nor --markdown-readme beside it.");
  if (!o.live && (!o.measured.output.empty() || o.strict))
    throw UsageError("-o and --strict belong to --live; committed measurements are compared where they are.");
  const LiveSettings untouched;
  if (!o.live && (o.measured.backend != untouched.backend || !o.measured.workload.empty() ||
                  !o.measured.scratch.empty() || o.measured.seconds != untouched.seconds))
    throw UsageError("--backend, --workload, --scratch and --seconds belong to --live; expected it beside them.");
  if (o.readme && (!o.settings.empty() || !o.folders.empty()))
    throw UsageError("--markdown-readme writes down what is committed; expected neither folders nor --set beside it.");
  return o.live ? validate_live(o) : validate_committed(o);
}

void add_validate_options(CLI::App& app, ValidateOptions& o) {
  app.add_option("folder", o.folders,
                 "Measurements of one machine; default: all of validate/data, or of the folder "
                 "that MEMWALL_VALIDATION_DATA names");
  app.add_option("--set", o.settings,
                 "Override a number of the machine file: link.pcie_h2d.bandwidth=1GB/s; repeatable")
      ->allow_extra_args(false);
  app.add_option("--runs", o.runs, "Write each schedule here twice, as measured and as simulated (.h5)");
  app.add_option("--format", o.format, "table, json, csv or md")->capture_default_str();
  app.add_flag("--markdown-readme", o.readme, "Print validate/README.md with its table made anew");
  app.add_option("--published", o.published,
                 "Instead: predict the published step times and peaks of the tables (.csv) in this folder");
  app.add_option("--table", o.tables, "With --published: this table only, its file's name without .csv; repeatable")
      ->allow_extra_args(false);
  app.add_flag("--fit", o.fit,
               "With --published: fit the constants of tables that are judged to the first half of their rows, and "
               "print them");
  app.add_option("--transfer", o.transfer,
                 "Instead: transfer measurements of the captures and tables in this folder (which holds published and "
                 "traces) from one GPU to another that measured the same work");
  app.add_flag("--markdown-docs", o.docs,
               "With --published or --transfer: print docs/accuracy.md or docs/transfer.md with its tables made anew");
  app.add_flag(
      "--live", o.live,
      "Measure this computer, alone and by several processes at once, calibrate, execute four schedules and compare");
  app.add_option("--backend", o.measured.backend, "With --live: host (this computer stands in for a GPU) or cuda")
      ->capture_default_str();
  app.add_option("--workload", o.measured.workload, "With --live: the step that is executed; default: the sample");
  app.add_option("-o,--output", o.measured.output, "With --live: keep results, machine file, schedules and executions");
  app.add_option("--scratch", o.measured.scratch, "With --live: where the file is that stands for NVMe");
  app.add_option("--seconds", o.measured.seconds, "With --live: how long measuring may take, executions not included")
      ->check(CLI::Range(1.0, 86400.0))
      ->capture_default_str();
  app.add_flag("--strict", o.strict, "With --live: exit code 4 if a row is outside its tolerance");
}

}  // namespace

Verb add_validate(CLI::App& parent) {
  auto o = std::make_shared<ValidateOptions>();
  CLI::App* app = parent.add_subcommand("validate", "Compare predictions with what was measured on real machines");
  add_validate_options(*app, *o);
  app->footer(
      "What each row means is described in docs/validation.md. Exit code 4: a row is outside its tolerance and not\n"
      "accepted in validate/DEVIATIONS.md; stderr names it.\n\n"
      "Examples:\n"
      "  memwall validate                                  # everything that is committed\n"
      "  memwall validate validate/data/NAME --runs runs   # and both runs of each schedule, for `memwall compare`\n"
      "  memwall validate --published FOLDER               # step times and peaks that others have published\n"
      "  memwall validate --transfer FOLDER                # measurements transferred to other GPUs, against theirs\n"
      "  memwall validate --live                           # this computer, a few minutes\n"
      "  memwall validate --live -o validate/data/NAME     # and keep it");
  return {app, [o] { return run(*o); }};
}

}  // namespace memwall
