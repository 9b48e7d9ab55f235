// memwall import: a capture becomes a trace file, and what was concluded from it a table.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cli/onto_option.h"
#include "cli/output_file.h"
#include "cli/print/format.h"
#include "cli/print/table.h"
#include "cli/progress.h"
#include "cli/verbs/verbs.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/trace/trace_check.h"
#include "study/grafted_workload.h"
#include "study/workload_file.h"
#include "traces/run/analysis/verdict.h"
#include "traces/trace/trace_file.h"

namespace memwall {
namespace {

struct ImportOptions {
  std::vector<std::filesystem::path> captures, execution_traces;
  std::string step_range, measured_on, output, format = "table";
  std::optional<std::uint32_t> rank;
  GraftSettings graft;
  bool explain = false, formats = false;
};

Table format_table() {
  Table table{.name = "formats",
              .title = "Formats, in the order in which they are asked; told apart by content alone",
              .columns = {"format", "written_by", "recognized_by", "knows"},
              .headings = {"format", "who writes it", "recognized by", "the trace then knows"},
              .rows = {},
              .wrap = true};
  for (const Importer& importer : importers())
    table.rows.push_back(
        {cell(importer.name), cell(importer.sentence), cell(importer.recognized), cell(importer.knows)});
  return table;
}

Cell count(std::uint64_t number, std::uint64_t of) {
  return of == 0 ? number_cell("", "null") : number_cell(grouped_text(number), std::to_string(number));
}

Table decision_table(const ImportOptions& o, const Workload& w) {
  Table table{
      .name = "decisions",
      .title = fmt::format("{} ({}): what was concluded, and for how many of how many", title_of(o.captures), w.kind),
      .columns = {"subject", "covered", "of", "share", "decision"},
      .headings = {"subject", "covered", "of", "share", "decision"},
      .rows = {},
      .wrap = true};
  for (const Decision& d : w.decisions) {
    const double share = d.of == 0 ? 0 : static_cast<double>(d.covered) / static_cast<double>(d.of);
    table.rows.push_back({cell(d.subject), count(d.covered, d.of), count(d.of, d.of),
                          d.of == 0 ? number_cell("", "null")
                                    : number_cell(fmt::format("{:.1f} %", 100 * share), fmt::format("{}", share)),
                          cell(d.sentence)});
  }
  return table;
}

// What matters first: what the capture is worth and what it lacks, then what was assumed, then what was counted.
std::vector<Table> note_tables(const Workload& w) {
  std::vector<Table> tables;
  for (const auto& [name, title] : {std::pair("missing", "What is missing or contradicts itself"),
                                    std::pair("assumed", "What was assumed where the file does not say"),
                                    std::pair("notes", "What the file holds, and what became of it")}) {
    tables.push_back({.name = name, .title = title, .columns = {"note"}, .headings = {""}, .rows = {}, .prose = true});
  }
  const auto add = [&](NoteKind kind, const std::string& note) {
    std::vector<std::vector<Cell>>& rows = tables[static_cast<std::size_t>(kind)].rows;
    rows.push_back({cell(note)});
  };
  if (const std::string worth = completeness_sentence(w.trace.completeness, w.trace.completeness_reason);
      !worth.empty())
    add(NoteKind::missing, worth);
  for (const std::string& line : w.report)
    if (std::ranges::find(w.trace.notes, line) == w.trace.notes.end()) add(NoteKind::counted, line);
  for (const std::string& line : w.trace.notes) add(kind_of_note(w.note_kinds, line), line);
  return tables;
}

// Without those that are empty, under the file's name.
std::vector<Table> summary_tables(const ImportOptions& o, const Workload& w) {
  std::vector<Table> tables = note_tables(w);
  std::erase_if(tables, [](const Table& table) { return table.rows.empty(); });
  if (!tables.empty())
    tables.front().title = fmt::format("{} ({}): {}", title_of(o.captures), w.kind, tables.front().title);
  return tables;
}

// A document has every table, also where it is empty.
std::vector<Table> explanation(const ImportOptions& o, const Workload& w, Format format) {
  std::vector<Table> tables{decision_table(o, w)};
  for (Table& table : note_tables(w))
    if (format == Format::json || !table.rows.empty()) tables.push_back(std::move(table));
  return tables;
}

int import_capture(const ImportOptions& o) {
  const Format format = parse_format(o.format);
  if (o.formats) {
    print(to_text(format_table(), format));
    return 0;
  }
  if (o.captures.empty()) throw UsageError("no capture is given; expected a file, or --formats.");
  if (o.output.empty() && !o.explain)
    throw UsageError("neither -o nor --explain is given; expected the trace file to write, or --explain.");
  TerminalWatch watch;
  Workload workload =
      complete_workload(o.captures, o.execution_traces,
                        {.step_range = o.step_range, .measured_on = o.measured_on, .rank = o.rank}, o.graft, &watch);
  require_sound(workload.trace, title_of(o.captures));
  if (o.explain) print_beside(o.output, to_text(explanation(o, workload, format), format));
  if (o.output.empty()) return 0;
  require_harmless(o.output, workload.files);
  write_trace(workload.trace, o.output);
  if (!o.explain) print_error("{}", to_text(summary_tables(o, workload), Format::table));
  const Trace& t = workload.trace;
  print_error("Wrote {}: {}, {}, {}.\n", o.output, counted_text(t.ops.size(), "op"),
              counted_text(t.storages.size(), "storage"), counted_text(t.steps.size(), "step"));
  return 0;
}

}  // namespace

Verb add_import(CLI::App& parent) {
  auto o = std::make_shared<ImportOptions>();
  CLI::App* app = parent.add_subcommand("import", "Turn a capture into a trace file");
  app->add_option("capture", o->captures,
                  "A file of one of the formats that --formats shows, gzip or not; told apart by content. Several, a "
                  "folder, or an archive of several: captures of the ranks of one job, whose collectives then meet");
  app->add_option(
         "--et", o->execution_traces,
         "ExecutionTrace of the same run (ExecutionTraceObserver): adds which operator uses which storage, and "
         "what each storage is for; repeatable, or a folder of them: each joins the capture of its rank")
      ->allow_extra_args(false);
  app->add_option(
      "--step-range", o->step_range,
      "Of a captured CUDA program: its NVTX ranges that begin with this are the steps; default: those called "
      "step, iteration, iter, train_step or training_step, with a number or not");
  app->add_option(
      "--rank", o->rank,
      "The one rank to import: of several captures, by what they say or, where none says it, by their order; "
      "of a file of several processes (Nsight Systems, ROCm), counted by GPU and process");
  app->add_option("--measured-on", o->measured_on,
                  "The machine of the durations, a name or a file, where the capture does not say its GPU (TrioSim, "
                  "Chakra, DTR, old Kineto); a GPU other than the file's is refused");
  add_onto_option(*app, o->graft.onto);
  app->add_option("--accept-unpaired", o->graft.most_unpaired,
                  "With --onto: per cent of the device's time that may have no partner in the other program")
      ->capture_default_str()
      ->check(CLI::Range(0, 100));
  app->add_option("-o,--output", o->output,
                  "The trace file to write (.mwt), \"-\" for stdout; may be left out with --explain");
  app->add_flag("--explain", o->explain, "Print every decision and join as a table, with how much it covers");
  app->add_flag("--formats", o->formats, "Print which formats are read: who writes them, how they are recognized");
  app->add_option("--format", o->format, "Of --explain and --formats: table, json, csv or md")->capture_default_str();
  app->footer(
      "The summary on stderr says what is missing first, then what was assumed, then compares counts with the file:\n"
      "constants with their sample sizes, blocking calls, edges that are given or inferred.\n\n"
      "Examples:\n"
      "  memwall import profile.json.gz -o step.mwt\n"
      "  memwall import profile.json.gz --et et.json.gz -o step.mwt    # policies that need dataflow\n"
      "  memwall import profile.json.gz --onto resnet50:batch=32 -o step.mwt   # policies, without an ExecutionTrace\n"
      "  memwall import profile.json.gz --onto step.mwc.gz -o step.mwt      # captured on fake tensors, no GPU\n"
      "  memwall import profile.json.gz --explain                      # what was concluded, and how sure\n"
      "  memwall import rank*.json.gz -o job.mwt                       # the ranks of one job together\n"
      "  memwall import traces.tar.gz -o job.mwt                       # the ranks in an archive\n"
      "  memwall import report.sqlite --rank 1 -o rank1.mwt            # one of the processes in a report\n"
      "  memwall import step.mwc.gz -o step.mwt                        # captured with or without a GPU\n"
      "  memwall import memwall-4711.mwi --step-range epoch -o step.mwt   # any CUDA program\n"
      "  memwall import BERT-256.kernels.csv -o bert.mwt\n"
      "  memwall import trace.csv --measured-on h100-sxm-80gb -o step.mwt\n"
      "  memwall import --formats");
  return {app, [o] { return import_capture(*o); }};
}

}  // namespace memwall
