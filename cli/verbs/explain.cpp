// memwall explain: what each number of a step's machine and policies is worth, what binds now and what binds next.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/gaps_option.h"
#include "cli/onto_option.h"
#include "cli/print/explanation_tables.h"
#include "cli/print/screen.h"
#include "cli/print/work_tables.h"
#include "cli/progress.h"
#include "cli/study_options.h"
#include "cli/verbs/verbs.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "study/explain/explanation.h"
#include "study/sweep/unit_of_field.h"
#include "study/workload_file.h"
#include "traces/run/file/run_file.h"

namespace memwall {
namespace {

constexpr int kExplainedUnfit = 3;

struct ExplainOptions {
  Scenario scenario;
  std::vector<std::string> only, curves;
  JournalOptions journal;
  std::string share = "5%", format = "table";
  unsigned jobs = 0;
  bool no_regret = false, full = false, accept_gaps = false;
};

// Of a file of that name the run read other bytes.
bool has_changed(const Run& run, const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return false;
  return std::ranges::any_of(run.inputs, [&](const InputFile& input) {
    return input.name == file.filename() && input.hash != hash_of_file(file);
  });
}

// That made a run file, which itself holds the step only as its policies left it.
Scenario scenario_of_run(const std::string& path) {
  const Run run = read_run(path);
  if (!run.provenance || run.provenance->scenario.empty())
    throw UsageError(fmt::format(
        "{}: this run file does not say which scenario made it (--no-provenance); expected the step with the options "
        "of that run, or the line of its scenario ('step=gpt.mwt machine=h100-sxm-80gb policy=checkpoint').",
        path));
  Scenario scenario = parse_scenario(run.provenance->scenario);
  for (const std::vector<std::string>* files : {&scenario.step, &scenario.execution_traces})
    for (const std::string& file : *files)
      if (has_changed(run, file))
        throw UsageError(fmt::format(
            "{}: it was made of {}, which has changed since; run the step again, or give it with its options.", path,
            file));
  return scenario;
}

// The step's options, or the line of a scenario in their place.
Scenario scenario_of(const ExplainOptions& o) {
  const std::string first = o.scenario.step.front();
  std::error_code error;
  const bool is_run = std::filesystem::is_regular_file(first, error) && is_run_file(first);
  if (o.scenario.step.size() != 1 || (!is_run && !first.starts_with("step="))) return o.scenario;
  Scenario beside = o.scenario;
  beside.step.clear();
  if (!(beside == Scenario{}))
    throw UsageError(
        "A run file, or the line of a scenario, is the whole question; leave out the other options that change the "
        "step, or put them into the line.");
  return is_run ? scenario_of_run(first) : parse_scenario(first);
}

double share_of(const std::string& text) {
  const std::optional<TypedNumber> number = typed_number(text);
  if (!number || !number->unit.is_plain() || !(number->value > 0) || number->value > 0.5)
    throw UsageError(fmt::format("--by {}: expected a share above 0 % and up to 50 %, as in 5%.", text));
  return number->value;
}

int explain_step(const ExplainOptions& o) {
  const Format format = parse_format(o.format);
  ExplanationRequest request{.scenario = scenario_of(o),
                             .only = o.only,
                             .share = share_of(o.share),
                             .regret = !o.no_regret,
                             .jobs = jobs_or_all(o.jobs),
                             .accept_gaps = o.accept_gaps};
  for (const std::string& text : o.curves) request.curves.push_back(parse_axis(text));
  const std::unique_ptr<SweepJournal> journal = o.journal.open();
  Explanation explanation;
  std::vector<Table> beside;
  {
    TerminalWatch watch("simulating");
    Study study(&watch);
    require_replay(request.scenario.step.front(), *study.load(request.scenario).trace, o.accept_gaps);
    explanation = explain(study, request, journal.get(), &watch);
    if (!request.scenario.policies.empty()) {
      const PreparedStep step = study.prepare(request.scenario);
      beside.push_back(class_effect_table(*step.base, *step.trace));
    }
  }
  print(format == Format::json ? explanation_json(explanation, beside)
                               : screen_text(explanation_tables(explanation, beside), format, o.full));
  // Not in the answer, which is the same whatever the journal holds.
  if (explanation.kept > 0)
    print_error("memwall explain: {} came from {}.\n", counted_text(explanation.kept, "point"), o.journal.place());
  if (explanation.here.fits) return 0;
  print_error("memwall explain: {} does not fit: {} are missing in {}. Times take memory as unlimited.\n",
              request.scenario.step.front(), human_bytes(explanation.missing), explanation.missing_in);
  return kExplainedUnfit;
}

void add_scenario_options(CLI::App& app, ExplainOptions& o) {
  app.add_option("step", o.scenario.step,
                 "A trace, a capture, or a network's name, as for `memwall run`; a run file, whose scenario is "
                 "explained; or the line of a scenario: "
                 "'step=gpt.mwt policy=checkpoint machine=h100-sxm-80gb'")
      ->required();
  app.add_option("--et", o.scenario.execution_traces, "ExecutionTrace of the same run, beside a Kineto capture")
      ->allow_extra_args(false);
  add_onto_option(app, o.scenario.onto);
  add_gaps_option(app, o.accept_gaps);
  app.add_option("--machine", o.scenario.machine,
                 "A machine's name or file; default: the one the step was measured on");
  app.add_option("--measured-on", o.scenario.measured_on,
                 "The machine of the durations, a name or a file, where the step does not say it");
  app.add_option("--set", o.scenario.settings, "Override a number of the machine; repeatable")->allow_extra_args(false);
  app.add_option("--budget", o.scenario.budget,
                 "GPU memory that the step's storages may take: 24GiB, or a share of what the machine has, 60%");
  app.add_option("--policy", o.scenario.policies, "A policy: NAME:key=value; repeatable")->allow_extra_args(false);
  app.add_option("--pager", o.scenario.pager, "What decides online what leaves a full GPU: NAME:key=value");
  app.add_option("--scale", o.scenario.scale, "Multiply durations: host=0.5; repeatable")->allow_extra_args(false);
}

}  // namespace

Verb add_explain(CLI::App& parent) {
  auto o = std::make_shared<ExplainOptions>();
  CLI::App* app =
      parent.add_subcommand("explain", "Say what binds a step, what binds next, and what each number is worth");
  add_scenario_options(*app, *o);
  app->add_option("--by", o->share, "By how much each number is varied, down and up; whole numbers by 1")
      ->capture_default_str();
  app->add_option("--only", o->only,
                  "Only these numbers: gpu.hbm.bandwidth, \"link.*\", \"offload.*\", scale.kernels; repeatable. Each "
                  "number takes two simulations, and two plans where a planner is among the policies")
      ->allow_extra_args(false);
  app->add_option("--curve", o->curves,
                  "Break-even of keep, recompute and offload over an axis, as for `memwall sweep`: "
                  "sequence=1024..65536:log:7 (of a generated step), pcie=16..64GB/s:log:5; repeatable")
      ->allow_extra_args(false);
  app->add_flag("--no-regret", o->no_regret, "Do not compare policies: planning takes longest of a large step");
  add_jobs_option(*app, o->jobs);
  add_journal_options(*app, o->journal);
  app->add_option("--format", o->format, "table, json, csv or md")->capture_default_str();
  app->add_flag("--full", o->full, "Print every table and every row; json and csv hold all of them anyway");
  app->footer(
      "An elasticity of -0.8 says: 1 % more of the number makes the step 0.8 % shorter. Exit code 3 means: the step\n"
      "does not fit; it is explained all the same. docs/explain.md has more.\n\n"
      "Examples:\n"
      "  memwall explain step.mwt\n"
      "  memwall explain llama3.2-1b --machine h100-sxm-80gb --policy offload:what=activations\n"
      "  memwall explain step.mwt --only \"gpu.*\" --by 1% --format json\n"
      "  memwall explain llama3.2-1b --machine h100-sxm-80gb --curve sequence=1024..16384:log:5\n"
      "  memwall explain step.mwt --curve pcie=16..64GB/s:log:5 --no-regret");
  return {app, [o] { return explain_step(*o); }};
}

}  // namespace memwall
