// memwall fit: the largest or the smallest value of one axis at which a condition holds, and what stops the next.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <optional>

#include "cli/onto_option.h"
#include "cli/print/answer.h"
#include "cli/print/screen.h"
#include "cli/print/sweep_tables.h"
#include "cli/print/table_cells.h"
#include "cli/progress.h"
#include "cli/verbs/verbs.h"
#include "sim/error.h"
#include "study/sweep/fit.h"

namespace memwall {
namespace {

constexpr int kDoesNotFit = 3;

struct FitOptions {
  Scenario base;
  std::string axis, journal = kUsualJournal, format = "table";
  std::vector<std::string> conditions = {"fits"}, fields = {"fits", "step_time_s", "peak"};
  bool smallest = false, no_journal = false, full = false;
};

std::string values_text(const FitResult& result, const std::vector<std::size_t>& which) {
  std::vector<std::string> values;
  for (const std::size_t i : which) values.push_back(result.values[i]);
  return fmt::format("{}", fmt::join(values, ", "));
}

std::string stop_sentence(const FitOptions& o, const FitResult& result, const std::string& name) {
  const FitProbe* const next = result.next();
  if (next == nullptr)
    return fmt::format("That is the {} value of the axis: it may go on.", o.smallest ? "smallest" : "largest");
  const std::string& value = result.values[next->value];
  if (!next->point.ran()) return fmt::format("{}={} fails: {}", name, value, next->point.record.error);
  return fmt::format("At {}={} this does not hold: {}.", name, value, fmt::join(next->broken, "; "));
}

std::vector<std::string> sentences_of(const FitOptions& o, const FitResult& result, const std::string& name) {
  std::vector<std::string> sentences;
  const std::string conditions = fmt::format("{}", fmt::join(o.conditions, " and "));
  if (result.edge.last)
    sentences.push_back(fmt::format("The {} {} at which {} holds is {}.", o.smallest ? "smallest" : "largest", name,
                                    conditions, result.values[*result.edge.last]));
  else
    sentences.push_back(fmt::format("There is no {} on the axis at which {} holds.", name, conditions));
  sentences.push_back(stop_sentence(o, result, name));
  if (!result.edge.anomalies.empty())
    sentences.push_back(fmt::format("The condition is not monotone: it does not hold at {} either, before that value.",
                                    values_text(result, result.edge.anomalies)));
  if (!result.was_scanned)
    sentences.push_back(fmt::format("{} of {} values were looked at; what lies between two of them was not.",
                                    result.edge.probed.size(), result.values.size()));
  return sentences;
}

Table probe_table(const FitOptions& o, const FitResult& result, const std::string& name) {
  Table t{
      .name = "probes", .title = "Values that were looked at", .columns = {name, "holds"}, .headings = {}, .rows = {}};
  for (const std::string& field : o.fields) t.columns.push_back(field);
  for (const FitProbe& probe : result.probes) {
    std::vector<Cell> row{cell(result.values[probe.value]), cell(!probe.point.ran()  ? "failed"
                                                                 : probe.point.meets ? "yes"
                                                                                     : "no")};
    for (const std::string& field : o.fields) row.push_back(field_cell(probe.point.record, field));
    t.rows.push_back(std::move(row));
  }
  t.screen_rows = 20;
  return t;
}

int fit_axis(const FitOptions& o) {
  const Format format = parse_format(o.format);
  const FitRequest request{
      .base = o.base, .axis = parse_axis(o.axis), .conditions = o.conditions, .largest = !o.smallest};
  std::optional<SweepJournal> journal;
  if (!o.no_journal) journal.emplace(o.journal);
  FitResult result;
  {
    TerminalWatch watch("reading");
    Study study(&watch);
    result = fit(study, request, journal ? &*journal : nullptr);
  }
  if (std::ranges::all_of(result.probes, [](const FitProbe& p) { return !p.point.ran(); })) {
    const PointRecord& first = result.probes.front().point.record;
    if (first.cause == "input") throw InputError(first.error);
    throw UsageError(first.error);
  }
  const std::vector<Table> tables{answer_table("", sentences_of(o, result, request.axis.name)),
                                  probe_table(o, result, request.axis.name)};
  print(screen_text(tables, format, o.full));
  if (result.edge.last) return 0;
  print_error("memwall fit: {} holds nowhere on the axis.\n", fmt::join(o.conditions, " and "));
  return kDoesNotFit;
}

}  // namespace

Verb add_fit(CLI::App& parent) {
  auto o = std::make_shared<FitOptions>();
  CLI::App* app = parent.add_subcommand("fit", "Find the largest or smallest value of one axis at which a step fits");
  app->add_option("step", o->base.step, "A trace, a capture, or a network's name, as for `memwall run`")->required();
  app->add_option("--over", o->axis, "The axis, as for `memwall sweep`: batch=1..256, pcie=8..128GB/s:log:40")
      ->required();
  app->add_flag("--smallest", o->smallest, "The smallest value, in place of the largest");
  app->add_option("--where", o->conditions,
                  "What has to hold, as for `memwall sweep`: fits, \"step_time < 1s\"; repeatable")
      ->allow_extra_args(false)
      ->capture_default_str();
  app->add_option("--et", o->base.execution_traces, "ExecutionTrace of the same run, beside a Kineto capture")
      ->allow_extra_args(false);
  add_onto_option(*app, o->base.onto);
  app->add_option("--machine", o->base.machine, "A machine's name or file; default: the one the step was measured on");
  app->add_option("--measured-on", o->base.measured_on, "The machine of the durations, where the step does not say it");
  app->add_option("--set", o->base.settings, "Override a number of the machine; repeatable")->allow_extra_args(false);
  app->add_option("--policy", o->base.policies, "A policy: NAME:key=value; repeatable")->allow_extra_args(false);
  app->add_option("--show", o->fields, "Columns of the table, joined by commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  app->add_option("--journal", o->journal, "Where finished points are kept")->capture_default_str();
  app->add_flag("--no-journal", o->no_journal, "Keep none, and compute every point");
  app->add_option("--format", o->format, "table, json, csv or md")->capture_default_str();
  app->add_flag("--full", o->full, "Print every row; json and csv hold all of them anyway");
  app->footer(
      "Exit code 3 means: it holds nowhere on the axis. docs/sweep.md has more.\n\n"
      "Examples:\n"
      "  memwall fit llama3.2-1b --machine h100-sxm-80gb --over batch=1..64\n"
      "  memwall fit step.mwt --policy checkpoint --over gpu.hbm.capacity=8..80GiB:73 --smallest\n"
      "  memwall fit step.mwt --policy offload:what=activations --over pcie=8..128GB/s:log:40 --smallest \\\n"
      "    --where \"step_time < 70ms\"");
  return {app, [o] { return fit_axis(*o); }};
}

}  // namespace memwall
