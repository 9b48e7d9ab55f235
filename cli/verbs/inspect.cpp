// memwall inspect: what a trace or capture knows, and what can be asked of it; what a memory plan decides.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/onto_option.h"
#include "cli/print/answer.h"
#include "cli/print/format.h"
#include "cli/print/plan_summary_tables.h"
#include "cli/print/recipe_text.h"
#include "cli/print/screen.h"
#include "cli/print/table_cells.h"
#include "cli/progress.h"
#include "cli/verbs/verbs.h"
#include "models/hw/modelled_step.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"
#include "sim/trace/dataflow_note.h"
#include "sim/trace/ranks.h"
#include "sim/words.h"
#include "study/grafted_workload.h"
#include "study/workload_file.h"
#include "traces/plan/plan_document.h"
#include "traces/run/analysis/verdict.h"

namespace memwall {
namespace {

struct InspectOptions {
  std::vector<std::filesystem::path> files, execution_traces;
  std::string onto, measured_on, format = "table";
  bool full = false;
};

// Whose programs the trace holds, and of how many: folded ranks run one program, others each their own.
std::string rank_text(const Trace& t) {
  if (rank_count(t) == 1)
    return t.ranks == 1 && t.job_ranks > 1 ? fmt::format("1 of {} in the job", t.job_ranks) : grouped_text(t.ranks);
  std::vector<std::uint32_t> numbers;
  for (const Rank& rank : t.rank_table) numbers.push_back(rank.number);
  return fmt::format("{}{}: {}", numbers.size(), t.job_ranks > 0 ? fmt::format(" of {} in the job", t.job_ranks) : "",
                     fmt::join(numbers, ", "));
}

Table overview(const Workload& w) {
  const Trace& t = w.trace;
  Table table{
      .name = "trace", .title = "", .columns = {"what", "value"}, .headings = {"", ""}, .rows = {}, .wrap = true};
  const auto row = [&](const char* what, std::string value) {
    table.rows.push_back({cell(what), cell(std::move(value))});
  };
  row("name", t.name);
  row("measured on", measured_nowhere(t) ? "nothing was measured: give --machine"
                     : t.machine.empty() ? "unknown: give --measured-on, or --machine"
                                         : t.machine);
  row("host threads", grouped_text(t.threads.size()));
  row("streams", grouped_text(t.streams.size()));
  row("steps",
      rank_count(t) > 1 ? fmt::format("{}, of all ranks together", t.steps.size()) : grouped_text(t.steps.size()));
  row("ranks", rank_text(t));
  row("samples per step", t.samples_per_step > 0 ? plain_number(t.samples_per_step) : "unknown");
  row("tokens per step", t.tokens_per_step > 0 ? plain_number(t.tokens_per_step) : "unknown");
  row("storages", grouped_text(t.storages.size()));
  row("memory at the start, not visible as storages", human_bytes(t.untracked_bytes));
  return table;
}

Table op_counts(const Trace& t) {
  struct Count {
    std::uint64_t number = 0;
    Duration device{}, host{};
    Bytes bytes = 0;
  };
  std::array<Count, kOpKinds> counts;
  for (const Op& op : t.ops) {
    Count& c = counts[static_cast<std::size_t>(op.kind)];
    ++c.number;
    if (!op.placed) c.host += op.host_gap + op.host_cost;  // of placed ops it is the time at which they are ready
    c.bytes += op.bytes;
    c.device += op.duration;
  }
  Table table{.name = "ops",
              .title = "Ops by kind",
              .columns = {"kind", "count", "duration_s", "host_s", "bytes"},
              .headings = {"kind", "count", "duration", "host gaps and calls", "bytes"},
              .rows = {},
              .wrap = true};
  for (int k = 0; k < kOpKinds; ++k) {
    const Count& c = counts[static_cast<std::size_t>(k)];
    if (c.number == 0) continue;
    table.rows.push_back({cell(std::string(to_string(static_cast<OpKind>(k)))), count_cell(c.number),
                          time_cell(c.device), time_cell(c.host), bytes_cell(c.bytes)});
  }
  return table;
}

Table storage_counts(const Trace& t) {
  struct Count {
    std::uint64_t number = 0, preexisting = 0;
    Bytes bytes = 0;
  };
  std::array<Count, kStorageKinds> counts;
  for (const Storage& s : t.storages) {
    Count& c = counts[static_cast<std::size_t>(s.kind)];
    ++c.number;
    c.preexisting += s.preexisting;
    c.bytes += s.bytes;
  }
  Table table{.name = "storages",
              .title = "Storages by kind (bytes of all, not at once)",
              .columns = {"kind", "count", "bytes", "preexisting"},
              .headings = {"kind", "count", "bytes", "older than the trace"},
              .rows = {},
              .wrap = true};
  for (int k = 0; k < kStorageKinds; ++k) {
    const Count& c = counts[static_cast<std::size_t>(k)];
    if (c.number == 0) continue;
    table.rows.push_back({cell(std::string(to_string(static_cast<StorageKind>(k)))), count_cell(c.number),
                          bytes_cell(c.bytes), count_cell(c.preexisting)});
  }
  return table;
}

struct Fact {
  const char* name;
  bool known;
  const char* meaning;
  const char* remedy;
};

std::array<Fact, 5> facts(const Knowledge& k, bool can_be_modelled = false) {
  return {Fact{"timing", k.timing, "durations and host gaps",
               can_be_modelled ? "give --machine: they are modelled for it"
                               : "capture with torch.profiler (Kineto) or Nsight Systems"},
          Fact{"allocations", k.allocations, "when memory is taken and given back",
               "capture with torch.profiler and profile_memory=True"},
          Fact{"dataflow", k.dataflow, "which op reads and writes which storage, and what each is for",
               "capture with torch.profiler, and an ExecutionTrace of the same run for --et, or give --onto a step of "
               "the same network"},
          Fact{"modules", k.modules, "module paths",
               "capture with torch.profiler and with_modules=True or with_stack=True"},
          Fact{"shapes", k.shapes, "FLOPs and bytes of kernels", "capture with torch.profiler and record_shapes=True"}};
}

// "inferred": a conclusion, which the notes count and judge.
const char* known_word(const Fact& fact, const Trace& t) {
  if (!fact.known) return "no";
  return std::string_view(fact.name) == "dataflow" && is_dataflow_inferred(t) ? "inferred" : "yes";
}

Table knowledge_table(const Trace& t) {
  Table table{.name = "knowledge",
              .title = "What it knows",
              .columns = {"what", "known", "meaning"},
              .headings = {"", "", ""},
              .rows = {},
              .wrap = true};
  for (const Fact& f : facts(t.knowledge, measured_nowhere(t)))
    table.rows.push_back({cell(f.name), cell(known_word(f, t)),
                          cell(f.known ? f.meaning : fmt::format("{}; to have it, {}", f.meaning, f.remedy))});
  return table;
}

// What stands between a policy and this trace; "" if nothing does.
std::string obstacle(const PolicyInfo& info, const Trace& t) {
  if (std::string of_ranks = rank_obstacle(info, t); !of_ranks.empty()) return of_ranks;
  Knowledge has = t.knowledge;
  has.timing |= measured_nowhere(t);  // a machine gives it
  const std::vector<std::string> missing = missing_knowledge(info.needs, has);
  return missing.empty() ? "" : "needs " + listed(missing);
}

std::string required_parameters(const PolicyInfo& info) {
  std::string text;
  for (const ParameterInfo& p : info.parameters)
    if (p.required()) text += (text.empty() ? "give " : ", ") + p.name + "=...";
  return text;
}

// What a policy says of the trace, obstacles included.
PolicyAnswer answer_of(const PolicyInfo& info, const Trace& t) {
  PolicyAnswer answer;
  answer.refusal = obstacle(info, t);
  return answer.refusal.empty() && info.answer ? info.answer(t) : answer;
}

// "yes", "yes, with from=N" or "no", and why.
std::vector<Cell> answer_row(const std::string& name, const PolicyInfo& info, const Trace& t) {
  const PolicyAnswer answer = answer_of(info, t);
  const std::string& why = answer.refusal;
  if (!why.empty()) return {cell(name), cell("no"), cell(why)};
  const std::string required = required_parameters(info);
  if (answer.setting.empty()) return {cell(name), cell("yes"), cell(required)};
  return {cell(name), cell("yes, with " + answer.setting, "yes"),
          cell(required + (required.empty() ? "" : "; ") + answer.reason)};
}

Table policy_table(const Trace& t) {
  Table table{.name = "policies",
              .title = "Policies",
              .columns = {"policy", "possible", "comment"},
              .headings = {"policy", "can be asked", ""},
              .rows = {},
              .wrap = true};
  for (const auto& [name, info] : policies()) table.rows.push_back(answer_row(name, info, t));
  return table;
}

// Those that can be asked as they are stand in the answer: of a screen's table only the others are shown.
void show_remarks_first(Table& policies) {
  const auto others = std::ranges::stable_partition(policies.rows, [](const std::vector<Cell>& row) {
    return row[1].text != "yes" || !row[2].text.empty();
  });
  const auto remarks = static_cast<std::size_t>(others.begin() - policies.rows.begin());
  if (remarks == 0 || remarks == policies.rows.size()) return;
  policies.title = "Policies that need something, or cannot be asked";
  policies.screen_rows = remarks;
}

Table note_table(const Workload& w) {
  Table table{.name = "notes",
              .title = "Notes of the import and of policies",
              .columns = {"note"},
              .headings = {""},
              .rows = {},
              .prose = true};
  for (const std::string& line : w.report) table.rows.push_back({cell(line)});
  for (const std::string& line : w.trace.notes) table.rows.push_back({cell(line)});
  return table;
}

// What it is, what it knows and can be asked, and how to have more.
std::vector<std::string> inspect_sentences(const Trace& t) {
  std::uint64_t kernels = 0;
  Duration device{};
  bool measured = false;
  for (const Op& op : t.ops) {
    kernels += op.kind == OpKind::kernel;
    if (runs_on_device(op.kind)) device += op.duration;
    measured |= runs_on_device(op.kind) && op.origin == Origin::measured;
  }
  std::vector<std::string> known, unknown, possible, impossible;
  std::string remedy;
  for (const Fact& f : facts(t.knowledge, measured_nowhere(t))) {
    (f.known ? known : unknown).push_back(f.name);
    if (!f.known && (remedy.empty() || std::string_view(f.name) == "dataflow")) remedy = f.remedy;
  }
  for (const auto& [name, info] : policies())
    (answer_of(info, t).refusal.empty() ? possible : impossible).push_back(name);
  std::vector<std::string> sentences;
  if (t.completeness != Completeness::complete)
    sentences.push_back(completeness_sentence(t.completeness, t.completeness_reason));
  sentences.push_back(
      fmt::format("{} of {} with {}{}; {}.", counted_text(std::max<std::size_t>(t.steps.size(), 1), "step"),
                  counted_text(t.ranks * rank_count(t), "rank"), counted_text(kernels, "kernel"),
                  device.count() > 0 ? fmt::format(" and {} of work on the device", human_time(device)) : "",
                  measured_nowhere(t) ? "nothing was measured, so every time is modelled for the machine that you name"
                  : t.machine.empty() ? "its GPU is not known: give --measured-on"
                                      : (measured || kernels == 0 ? "measured on " : "modelled for ") + t.machine));
  sentences.push_back(fmt::format("It knows {}{}; {}.",
                                  known.empty() ? "nothing of what is asked below" : enumerated(known),
                                  unknown.empty() ? "" : ", not " + enumerated(unknown),
                                  impossible.empty() ? "every policy can be asked"
                                  : possible.empty() ? "no policy can be asked"
                                                     : "policies " + enumerated(possible) + " can be asked"));
  if (const std::string why = why_no_dataflow(t); !why.empty()) sentences.push_back(why);
  if (!remedy.empty() && !impossible.empty() && !t.knowledge.dataflow)
    sentences.push_back(fmt::format("To ask more, {}.", remedy));
  return sentences;
}

// A plan is for a trace, and says itself what was expected of it where.
void refuse_beside_plan(const InspectOptions& o, const std::filesystem::path& plan) {
  std::string beside;
  if (o.files.size() > 1) beside = "other files; to see two plans side by side: memwall compare";
  if (!o.execution_traces.empty()) beside = "--et";
  if (!o.measured_on.empty()) beside = "--measured-on";
  if (!o.onto.empty()) beside = "--onto";
  if (!beside.empty())
    throw UsageError(fmt::format("{} is a memory plan, which is inspected alone, without {}.", plan.string(), beside));
}

int inspect(const InspectOptions& o) {
  const Format format = parse_format(o.format);
  if (const auto plan = std::ranges::find_if(o.files, is_plan); plan != o.files.end()) {
    refuse_beside_plan(o, *plan);
    print(screen_text(plan_summary_tables(read_plan_document(*plan), title_of(o.files)), format, o.full));
    return 0;
  }
  TerminalWatch watch;
  Workload w = complete_workload(o.files, o.execution_traces, {.measured_on = o.measured_on}, {.onto = o.onto}, &watch);
  const std::string title = fmt::format("{} ({})", title_of(o.files), w.kind);
  std::vector<Table> tables{answer_table(title, inspect_sentences(w.trace)), overview(w)};
  if (!w.trace.recipe.empty()) tables.push_back(recipe_table(w.trace.recipe));
  tables.push_back(knowledge_table(w.trace));
  tables.push_back(policy_table(w.trace));
  if (format == Format::table && !o.full) show_remarks_first(tables.back());
  tables.push_back(note_table(w));
  tables.back().screen_rows = 7;
  for (Table& table : std::vector<Table>{op_counts(w.trace), storage_counts(w.trace)}) {
    table.detail = true;
    tables.push_back(std::move(table));
  }
  print(screen_text(std::move(tables), format, o.full));
  return 0;
}

}  // namespace

Verb add_inspect(CLI::App& parent) {
  auto o = std::make_shared<InspectOptions>();
  CLI::App* app = parent.add_subcommand(
      "inspect", "Say what a trace knows, and what can be asked of it; or what a memory plan decides");
  app->add_option(
         "file", o->files,
         "A trace file (.mwt), or a capture as for `memwall import`; several, or a folder: the ranks of one job. Or a "
         "memory plan (from `memwall run --plan-out`), told by its content")
      ->required();
  app->add_option("--et", o->execution_traces, "ExecutionTrace of the same run, beside a Kineto capture; repeatable")
      ->allow_extra_args(false);
  add_onto_option(*app, o->onto);
  app->add_option("--measured-on", o->measured_on,
                  "The machine of the durations, a name or a file, where a capture does not say its GPU");
  app->add_option("--format", o->format, "table, json, csv or md")->capture_default_str();
  app->add_flag("--full", o->full, "Print every table and every note; json and csv hold all of them anyway");
  app->footer(
      "Examples:\n"
      "  memwall inspect step.mwt\n"
      "  memwall inspect profile.json.gz --et et.json.gz --format md\n"
      "  memwall inspect step.plan");
  return {app, [o] { return inspect(*o); }};
}

}  // namespace memwall
