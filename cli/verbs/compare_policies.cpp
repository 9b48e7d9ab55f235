// memwall compare-policies: a step under many policies within several budgets of GPU memory, side by side.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <ostream>
#include <thread>

#include "cli/allocator_options.h"
#include "cli/gaps_option.h"
#include "cli/onto_option.h"
#include "cli/output_file.h"
#include "cli/print/policy_comparison_tables.h"
#include "cli/print/screen.h"
#include "cli/progress.h"
#include "cli/verbs/verbs.h"
#include "sim/error.h"
#include "sim/files/file_writer.h"
#include "traces/figure/svg.h"

namespace memwall {
namespace {

struct ComparePoliciesOptions {
  std::vector<std::string> execution_traces, settings, budgets, policies, beneath;
  std::string step, onto, machine, measured_on, allocator = "pytorch", allocator_settings, csv, json, picture, format = "table";
  unsigned jobs = 0;
  bool all = false, full = false, accept_gaps = false;
};

struct PolicyOutput {
  const char* option;
  const std::string& path;
};

std::vector<PolicyOutput> outputs_of(const ComparePoliciesOptions& o) {
  std::vector<PolicyOutput> all;
  for (const PolicyOutput& one : {PolicyOutput{"--csv", o.csv}, {"--json", o.json}, {"--svg", o.picture}})
    if (!one.path.empty()) all.push_back(one);
  return all;
}

// What is wrong with a place is told before a long comparison.
void check_outputs(const ComparePoliciesOptions& o, const std::vector<std::filesystem::path>& inputs) {
  const std::vector<PolicyOutput> all = outputs_of(o);
  for (std::size_t i = 0; i < all.size(); ++i) {
    require_harmless(all[i].path, inputs);
    for (std::size_t k = 0; k < i; ++k)
      if (std::filesystem::path(all[i].path).lexically_normal() ==
          std::filesystem::path(all[k].path).lexically_normal())
        throw UsageError(
            fmt::format("{} and {} both name \"{}\"; expected two files.", all[k].option, all[i].option, all[i].path));
    if (all[i].path != "-") (void)FileWriter(all[i].path);
  }
}

void check_picture_name(const std::string& path) {
  if (path.empty() || path == "-" || std::filesystem::path(path).extension() == ".svg") return;
  throw UsageError(fmt::format("--svg {}: the picture is written as .svg; give it that ending.", path));
}

bool prints_a_file(const ComparePoliciesOptions& o) { return o.csv == "-" || o.json == "-" || o.picture == "-"; }

void write_files(const ComparePoliciesOptions& o, const PolicyComparison& comparison) {
  if (!o.csv.empty())
    write_output(o.csv, [&](std::ostream& out) { out << to_text(policy_cell_table(comparison), Format::csv); });
  if (!o.json.empty()) write_output(o.json, [&](std::ostream& out) { out << policy_comparison_json(comparison); });
  if (!o.picture.empty()) {
    const Figure figure = draw_budget_times(policy_comparison_chart(comparison));
    write_output(o.picture, [&](std::ostream& out) { write_svg(figure, out); });
  }
}

std::string report_of(const ComparePoliciesOptions& o, const PolicyComparison& comparison, Format format) {
  if (format == Format::json) return policy_comparison_json(comparison);
  return screen_text(policy_comparison_tables(comparison, format != Format::csv), format, o.full);
}

int compare_all(const ComparePoliciesOptions& o) {
  const Format format = parse_format(o.format);
  check_picture_name(o.picture);
  const Scenario scenario{.step = {o.step},
                          .execution_traces = o.execution_traces,
                          .onto = o.onto,
                          .measured_on = o.measured_on,
                          .machine = o.machine,
                          .settings = o.settings,
                          .policies = o.beneath,
                          .allocator = o.allocator,
                          .allocator_settings = o.allocator_settings};
  PolicyComparison comparison;
  {
    TerminalWatch watch("comparing");
    Study study(&watch, StudyMemory::base_steps);
    const LoadedStep loaded = study.load(scenario);
    require_replay(o.step, *loaded.trace, o.accept_gaps);
    check_outputs(o, loaded.files);
    comparison = compare_policies(study,
                                  {.scenario = scenario,
                                   .budgets = o.budgets,
                                   .policies = o.policies,
                                   .all_planners = o.all,
                                   .jobs = o.jobs > 0 ? o.jobs : std::max(1u, std::thread::hardware_concurrency())},
                                  &watch);
  }
  write_files(o, comparison);
  print_beside(prints_a_file(o) ? "-" : "", report_of(o, comparison, format));
  if (comparison.anything_fits()) return 0;
  print_error("memwall compare-policies: {}: nothing fits within any of the budgets.\n", o.step);
  return 3;
}

void add_compare_policies_options(CLI::App& app, ComparePoliciesOptions& o) {
  app.add_option("step", o.step, "A trace file (.mwt), a capture, or a network's name, as for `memwall run`")
      ->required();
  app.add_option("--et", o.execution_traces, "ExecutionTrace of the same run, beside a Kineto capture")->expected(1);
  add_onto_option(app, o.onto);
  add_gaps_option(app, o.accept_gaps);
  app.add_option("--machine", o.machine, "A machine's name or file; default: the one the step was measured on");
  app.add_option("--measured-on", o.measured_on,
                 "The machine of the durations, a name or a file, where a capture does not say its GPU");
  app.add_option("--set", o.settings, "Override a number of the machine: link.pcie_h2d.bandwidth=50GB/s; repeatable")
      ->allow_extra_args(false);
  app.add_option("--budget", o.budgets,
                 "GPU memory for the step, several joined by commas: sizes (40GiB, 80GB) and shares of what it "
                 "reserves with unlimited memory (70%). Default: 100%,70%,50%,30%")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--policy", o.policies,
                 "Compare this one: NAME:key=value, without a budget; repeatable. Default: every planner. The step "
                 "without a policy and full checkpointing always stand beside")
      ->allow_extra_args(false);
  app.add_flag("--all", o.all, "Every planner, too, beside those that --policy names");
  app.add_option("--with", o.beneath, "A policy that all have beneath their own: batch:32; repeatable")
      ->allow_extra_args(false);
  add_allocator_options(app, o.allocator, o.allocator_settings);
  app.add_option("--csv", o.csv, "Write a row per policy and budget here; \"-\" prints it, the report goes to stderr");
  app.add_option("--json", o.json, "Write what --format json prints here");
  app.add_option("--svg", o.picture, "Write the picture here (.svg): step time against budget, bound and Pareto front");
  app.add_option("--jobs", o.jobs, "Threads; default: as many as this computer runs. The result is the same")
      ->check(CLI::Range(1u, 1024u));
  app.add_option("--format", o.format, "table, json, csv or md")->capture_default_str();
  app.add_flag("--full", o.full, "Print every table and every row; json and csv hold all of them anyway");
}

}  // namespace

Verb add_compare_policies(CLI::App& parent) {
  auto o = std::make_shared<ComparePoliciesOptions>();
  CLI::App* app =
      parent.add_subcommand("compare-policies", "Step time of many policies within several budgets of GPU memory");
  add_compare_policies_options(*app, *o);
  app->footer(
      "A policy that refuses the step has a mark and its sentence in the notes. Tables, CSV and JSON are described in\n"
      "docs/planning.md. Exit code 3 means: nothing fits within any of the budgets; the result is printed in\n"
      "full.\n\n"
      "Examples:\n"
      "  memwall compare-policies step.mwt\n"
      "  memwall compare-policies step.mwt --machine h100-sxm-80gb --budget 40GiB,32GiB,50% --svg policies.svg\n"
      "  memwall compare-policies step.mwt --policy rotor --policy capuchin:use=swaps --csv policies.csv\n"
      "  memwall compare-policies step.mwc.gz --with batch:32 --policy offload:what=activations,to=host --all");
  return {app, [o] { return compare_all(*o); }};
}

}  // namespace memwall
