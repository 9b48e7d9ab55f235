// memwall export: a run in forms that other tools open.
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>
#include <optional>
#include <ostream>

#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/verbs/verbs.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/trace/ranks.h"
#include "traces/run/analysis/summary.h"
#include "traces/run/export/export_chrome.h"
#include "traces/run/export/export_csv.h"
#include "traces/run/export/export_kineto.h"
#include "traces/run/export/export_perfetto.h"
#include "traces/run/export/export_snapshot.h"
#include "traces/run/file/run_file.h"

namespace memwall {
namespace {

struct ExportOptions {
  std::string run, to, output;
  std::optional<std::uint32_t> rank{};
};

// Writes the run, of which some forms hold one rank; returns what is to be said of the result, "" = nothing.
using Exporter = std::string (*)(const Run& run, std::uint16_t rank, std::ostream& out);

struct ExportForm {
  const char* name;
  bool is_text = true;
  bool is_of_one_rank = false;
  Exporter write;
};

template <auto kExport>
std::string silently(const Run& run, std::uint16_t, std::ostream& out) {
  kExport(run, out);
  return "";
}

void export_summary(const Run& run, std::ostream& out) { out << to_json(summarize(run)); }

constexpr ExportForm kForms[] = {
    {"perfetto", false, false, silently<export_perfetto>},
    {"chrome", true, false, silently<export_chrome>},
    {"kineto", true, true,
     [](const Run& run, std::uint16_t rank, std::ostream& out) {
       export_kineto(run, rank, out);
       return std::string();
     }},
    {"memory_viz", false, false,
     [](const Run& run, std::uint16_t, std::ostream& out) { return export_snapshot(run, out); }},
    {"csv", true, false, silently<export_csv>},
    {"json", true, false, silently<export_summary>}};

const ExportForm& form_of(const std::string& name) {
  std::vector<std::string> names;
  for (const ExportForm& form : kForms) {
    if (form.name == name) return form;
    names.emplace_back(form.name);
  }
  const std::string near = nearest_name(name, names);
  throw UsageError(fmt::format("--to \"{}\" is unknown{}; expected perfetto, chrome, kineto, memory_viz, csv or json.",
                               name, near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near)));
}

Run read_with_progress(const std::string& path) {
  const ReadingProgress progress(path);
  return read_run(path);
}

std::uint32_t number_of(const Trace& trace, std::uint16_t rank) {
  return trace.rank_table.empty() ? 0 : trace.rank_table[rank].number;
}

std::uint16_t index_of_rank(const Trace& trace, std::uint32_t number) {
  const auto ranks = static_cast<std::uint16_t>(rank_count(trace));
  for (std::uint16_t rank = 0; rank < ranks; ++rank)
    if (number_of(trace, rank) == number) return rank;
  throw UsageError(fmt::format("--rank {}: the run holds {}, the first of number {}; expected one of them.", number,
                               counted_text(ranks, "rank"), number_of(trace, 0)));
}

void write_form(const ExportForm& form, const Run& run, std::uint16_t rank, const std::string& place) {
  std::string remark;
  write_output(place, [&](std::ostream& out) { remark = form.write(run, rank, out); });
  if (!remark.empty()) print_error("memwall export: {}\n", remark);
}

// A file for each rank, as tools that compare ranks want them.
int write_ranks(const ExportForm& form, const ExportOptions& o, const Run& run) {
  for (std::uint16_t rank = 0; rank < rank_count(run.trace); ++rank) {
    const std::string place =
        (std::filesystem::path(o.output) / fmt::format("rank{}.json", number_of(run.trace, rank))).string();
    require_harmless(place, {o.run});
    write_form(form, run, rank, place);
  }
  return 0;
}

int export_run(const ExportOptions& o) {
  const ExportForm& form = form_of(o.to);
  if (o.rank && !form.is_of_one_rank)
    throw UsageError(fmt::format("--rank: --to {} holds all ranks of a run; expected it with --to kineto.", o.to));
  const bool to_stdout = o.output.empty() || o.output == "-";
  if (to_stdout && !form.is_text && ::isatty(STDOUT_FILENO) == 1)
    throw UsageError(
        fmt::format("--to {} writes bytes that no terminal shows; give -o FILE or redirect stdout.", o.to));
  const Run run = read_with_progress(o.run);
  std::error_code error;
  if (form.is_of_one_rank && !o.rank && !to_stdout && std::filesystem::is_directory(o.output, error))
    return write_ranks(form, o, run);
  if (form.is_of_one_rank && !o.rank && rank_count(run.trace) > 1)
    throw UsageError(fmt::format(
        "The run holds {}, and a profile one; expected --rank R, or -o FOLDER (one that there is) for a file of each.",
        counted_text(rank_count(run.trace), "rank")));
  require_harmless(o.output, {o.run});
  write_form(form, run, o.rank ? index_of_rank(run.trace, *o.rank) : std::uint16_t{0}, o.output);
  return 0;
}

}  // namespace

Verb add_export(CLI::App& parent) {
  auto o = std::make_shared<ExportOptions>();
  CLI::App* app = parent.add_subcommand("export", "Write a run in a form that other tools open");
  app->add_option("run", o->run, "The run (.h5, from `memwall run -o`)")->required();
  app->add_option(
         "--to", o->to,
         "perfetto (ui.perfetto.dev), chrome (chrome://tracing), kineto (a profile as torch.profiler writes it, "
         "for Holistic Trace Analysis), memory_viz (a memory snapshot, for pytorch.org/memory_viz and memwall "
         "memory), csv (one line per op) or json (the summary)")
      ->required();
  app->add_option("--rank", o->rank, "Of a run of several ranks the one whose profile is written (kineto), by number");
  app->add_option("-o,--output", o->output,
                  "Where to; default: stdout. A folder, with --to kineto: a file for each rank");
  app->footer(
      "Examples:\n"
      "  memwall export run.h5 --to perfetto -o run.pftrace     # open in ui.perfetto.dev\n"
      "  memwall export run.h5 --to memory_viz -o step.pickle   # drop it on pytorch.org/memory_viz\n"
      "  memwall export run.h5 --to kineto -o profiles/         # for Holistic Trace Analysis\n"
      "  memwall export run.h5 --to csv > ops.csv");
  return {app, [o] { return export_run(*o); }};
}

}  // namespace memwall
