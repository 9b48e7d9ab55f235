// memwall plan: the plan to take for a step within a budget, others beside it, and what no plan can beat.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <ostream>

#include "cli/output_file.h"
#include "cli/print/advice_tables.h"
#include "cli/print/screen.h"
#include "cli/progress.h"
#include "cli/verbs/verbs.h"
#include "sim/error.h"
#include "study/plan_outcome.h"
#include "study/step_advice.h"

namespace memwall {
namespace {

struct PlanOptions {
  std::vector<std::string> files, execution_traces, settings, policies;
  std::string machine, measured_on, budget, tiers = "host", executable, output, format = "table", objective = "time";
  double robust = 0;
  bool no_recompute = false, full = false;
};

constexpr int kDoesNotFit = 3;

AdviceRequest request_of(const PlanOptions& o) {
  AdviceRequest request;
  request.scenario.step = o.files;
  request.scenario.execution_traces = o.execution_traces;
  request.scenario.measured_on = o.measured_on;
  request.scenario.machine = o.machine;
  request.scenario.settings = o.settings;
  request.scenario.policies = o.policies;
  request.scenario.executable = o.executable;
  request.budget = o.budget;
  request.tiers = o.tiers;
  if (o.no_recompute) request.settings += "recompute=0";
  if (o.robust > 0) request.settings += fmt::format("{}robust={}", request.settings.empty() ? "" : ",", o.robust);
  return request;
}

// The recommended plan as a file, as `memwall run --plan-out` writes it.
void write_recommended(const PlanOptions& o, Study& study, const AdviceRequest& request, const StepAdvice& advice) {
  Scenario scenario = request.scenario;
  const auto& chosen = advice.plans.front().policies;
  scenario.policies.insert(scenario.policies.end(), chosen.begin(), chosen.end());
  const PlannedStep planned = study.plan(scenario);
  const std::string text = plan_text(planned, study.run(scenario, {.record = false}).run);
  write_output(o.output, [&](std::ostream& out) { out << text; });
}

int plan_step_of(const PlanOptions& o) {
  if (o.objective != "time")
    throw UsageError(fmt::format("--objective {}: not implemented; expected time. The largest batch: memwall run STEP "
                                 "--policy batch --policy plan --find-largest-batch.",
                                 o.objective));
  const Format format = parse_format(o.format);
  Study study;
  const AdviceRequest request = request_of(o);
  ProgressBar bar("planning");
  const StepAdvice advice = advise(study, request, [&](double share) { bar.update(share); });
  if (!o.output.empty()) {
    const PreparedStep step = study.prepare(request.scenario);
    require_harmless(o.output, step.files);
    write_recommended(o, study, request, advice);
  }
  print_beside(o.output, screen_text(advice_tables(advice), format, o.full));
  if (advice.plans.front().fits) return 0;
  print_error("memwall plan: no plan was found for {} within {}; {} are missing.\n", o.files.front(),
              advice.budget > 0 ? human_bytes(advice.budget) : "the device",
              human_bytes(advice.plans.front().missing));
  return kDoesNotFit;
}

}  // namespace

Verb add_plan(CLI::App& parent) {
  auto o = std::make_shared<PlanOptions>();
  CLI::App* app = parent.add_subcommand("plan", "Recommend a memory plan within a budget, and say how near the best it is");
  app->add_option("step", o->files, "A trace, a capture, or a workload's name (memwall help run)")->required();
  app->add_option("--et", o->execution_traces, "ExecutionTrace of the same run, beside a Kineto capture; repeatable");
  app->add_option("--machine", o->machine, "A machine's name or file; default: the one the step was measured on");
  app->add_option("--measured-on", o->measured_on, "The machine of the step's durations, where it does not say it");
  app->add_option("--set", o->settings, "Override a number of the machine: gpu.hbm.bandwidth=4TB/s; repeatable");
  app->add_option("--policy", o->policies, "What is done to the step before it is planned: NAME:key=value; repeatable");
  app->add_option("--budget", o->budget,
                  "Device memory that the step's storages may take, or a share of the device: 24GiB, 60%; default: all");
  app->add_option("--tiers", o->tiers, "Where storages may wait, the first preferred: host+nvme")->capture_default_str();
  app->add_flag("--no-recompute", o->no_recompute, "Run nothing again");
  app->add_option("--robust", o->robust, "Plan as if links were slower by this share, in percent")
      ->check(CLI::Range(0.0, 1000.0));
  app->add_option("--executable", o->executable, "Only what this executes: torch");
  app->add_option("--objective", o->objective, "time: the shortest step")->capture_default_str();
  app->add_option("-o,--output", o->output, "Write the recommended plan, for --plan, memwall_apply and emit");
  app->add_option("--format", o->format, "table, json, csv or md")->capture_default_str();
  app->add_flag("--full", o->full, "Print every table and every note; json and csv hold all of them anyway");
  app->footer(
      "Each plan is simulated with PyTorch's allocator; the bound holds for any plan that moves or computes again whole\n"
      "storages, step after step. Exit code 3: no plan was found that fits.\n\n"
      "Examples:\n"
      "  memwall plan llama3-8b:batch=1,sequence=8192,precision=bf16 --machine h100-sxm-80gb\n"
      "  memwall plan step.mwt --budget 24GiB -o plan.json\n"
      "  memwall plan step.mwt --budget 60% --tiers host+nvme --format json");
  return {app, [o] { return plan_step_of(*o); }};
}

}  // namespace memwall
