// memwall calibrate: measurements become a machine file, and how well each number explains them.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <ostream>

#include "cli/output_file.h"
#include "cli/print/table_cells.h"
#include "cli/verbs/verbs.h"
#include "validate/calibrate/calibrate.h"
#include "validate/measurement/results_file.h"

namespace memwall {
namespace {

struct CalibrateOptions {
  std::string results, output, format = "table";
  CalibrationSettings settings;
};

std::vector<Table> tables_of(const Calibration& calibration) {
  Table residuals{.name = "residuals",
                  .title =
                      "Fitted numbers, and how far memwall's own prices are from the rows: |predicted - measured| / "
                      "measured",
                  .columns = {"path", "value", "measurements", "rows", "median", "worst"},
                  .headings = {"number", "value", "measured by", "rows", "median", "worst"},
                  .rows = {}};
  for (const Residual& r : calibration.residuals)
    residuals.rows.push_back({cell(r.path), cell(r.value), cell(r.measurements),
                              number_cell(std::to_string(r.rows), std::to_string(r.rows)), share_cell(r.median),
                              share_cell(r.worst)});
  Table notes{.name = "notes", .title = "Notes", .columns = {"note"}, .headings = {""}, .rows = {}, .prose = true};
  for (const std::string& note : calibration.notes) notes.rows.push_back({cell(note)});
  return {residuals, notes};
}

int calibrate_results(const CalibrateOptions& o) {
  const Format format = parse_format(o.format);
  const MeasurementSet set = read_results(o.results);
  require_harmless(o.output, {o.results, std::filesystem::path(o.results) / "results.csv",
                              std::filesystem::path(o.results) / "results.json"});
  const Calibration calibration = calibrate(set, o.settings);
  const std::string report = to_text(tables_of(calibration), format);
  if (o.output.empty()) {
    print(report);
    print_error("No machine file was written; -o FILE.textproto writes it, -o - prints it.\n");
    return 0;
  }
  write_output(o.output, [&](std::ostream& out) { out << calibration.text; });
  print_beside(o.output, report);
  if (o.output == "-") return 0;
  print_error("Wrote {}: try `memwall machines show {}`.\n", o.output,
              o.output.find('/') == std::string::npos ? "./" + o.output : o.output);
  return 0;
}

}  // namespace

Verb add_calibrate(CLI::App& parent) {
  auto o = std::make_shared<CalibrateOptions>();
  CLI::App* app = parent.add_subcommand("calibrate", "Make a machine file of measurements, with residuals");
  app->add_option("results", o->results, "What `memwall-bench -o` wrote: the folder, or its results.csv")->required();
  app->add_option("-o,--output", o->output,
                  "The machine file to write; \"-\" prints it; default: none, only the table");
  app->add_option("--name", o->settings.name, "Name of the machine; default: from the GPU's name");
  app->add_option("--base", o->settings.base,
                  "Machine that gives what was not measured (name or path); default: the one with the same GPU, else "
                  "the nearest");
  app->add_option("--format", o->format, "Of the table: table, json, csv or md")->capture_default_str();
  app->footer(
      "Each number of the file says in its source which rows it was fitted to and how far it is from explaining\n"
      "them, or of which machine it was taken. Measurements that make no sense are refused by row and figure.\n\n"
      "Examples:\n"
      "  memwall-bench -o results                          # measure this machine\n"
      "  memwall calibrate results                         # what can be learnt of it\n"
      "  memwall calibrate results -o my-h200.textproto --name my-h200\n"
      "  memwall run step.mwt --machine ./my-h200.textproto");
  return {app, [o] { return calibrate_results(*o); }};
}

}  // namespace memwall
