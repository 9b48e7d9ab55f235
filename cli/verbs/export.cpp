// memwall export: a run in forms that other tools open.
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <ostream>

#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/verbs/verbs.h"
#include "sim/error.h"
#include "traces/run/export/export_chrome.h"
#include "traces/run/export/export_csv.h"
#include "traces/run/export/export_perfetto.h"
#include "traces/run/file/run_file.h"
#include "traces/run/analysis/summary.h"

namespace memwall {
namespace {

struct ExportOptions {
  std::string run, to, output;
};

using Exporter = void (*)(const Run&, std::ostream&);

Exporter exporter_of(const std::string& name) {
  static const std::vector<std::pair<std::string, Exporter>> exporters{
      {"perfetto", export_perfetto},
      {"chrome", export_chrome},
      {"csv", export_csv},
      {"json", [](const Run& run, std::ostream& out) { out << to_json(summarize(run)); }}};
  std::vector<std::string> names;
  for (const auto& [known, exporter] : exporters) {
    if (known == name) return exporter;
    names.push_back(known);
  }
  const std::string near = nearest_name(name, names);
  throw UsageError(fmt::format("--to \"{}\" is unknown{}; expected perfetto, chrome, csv or json.", name,
                               near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near)));
}

int export_run(const ExportOptions& o) {
  const Exporter exporter = exporter_of(o.to);
  const bool to_stdout = o.output.empty() || o.output == "-";
  if (to_stdout && o.to == "perfetto" && ::isatty(STDOUT_FILENO) == 1)
    throw UsageError("--to perfetto writes bytes that no terminal shows; give -o FILE or redirect stdout.");
  const Run run = [&] {
    const ReadingProgress progress(o.run);
    return read_run(o.run);
  }();
  require_harmless(o.output, {o.run});
  write_output(o.output, [&](std::ostream& out) { exporter(run, out); });
  return 0;
}

}  // namespace

Verb add_export(CLI::App& parent) {
  auto o = std::make_shared<ExportOptions>();
  CLI::App* app = parent.add_subcommand("export", "Write a run in a form that other tools open");
  app->add_option("run", o->run, "The run (.h5, from `memwall run -o`)")->required();
  app->add_option("--to", o->to,
                  "perfetto (ui.perfetto.dev), chrome (chrome://tracing), csv (one line per op) or json (the summary)")
      ->required();
  app->add_option("-o,--output", o->output, "Where to; default: stdout");
  app->footer(
      "Examples:\n"
      "  memwall export run.h5 --to perfetto -o run.pftrace     # open in ui.perfetto.dev\n"
      "  memwall export run.h5 --to csv > ops.csv");
  return {app, [o] { return export_run(*o); }};
}

}  // namespace memwall
