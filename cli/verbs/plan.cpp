// memwall plan: the plan to take for a step within a budget, others beside it, and what no plan can beat.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>
#include <thread>
#include <utility>

#include "cli/allocator_options.h"
#include "cli/framework_options.h"
#include "cli/gaps_option.h"
#include "cli/one_line.h"
#include "cli/onto_option.h"
#include "cli/output_file.h"
#include "cli/print/advice_tables.h"
#include "cli/print/batch_advice_tables.h"
#include "cli/print/given_size.h"
#include "cli/print/observation_table.h"
#include "cli/print/screen.h"
#include "cli/progress.h"
#include "cli/verbs/plan_layouts.h"
#include "cli/verbs/verbs.h"
#include "sim/error.h"
#include "sim/files/file_writer.h"
#include "sim/human_text.h"
#include "study/batch_advice.h"
#include "study/plan_outcome.h"
#include "study/step_advice.h"

namespace memwall {
namespace {

struct PlanOptions {
  std::vector<std::string> files, execution_traces, settings, policies;
  std::string onto, machine, measured_on, allocator = "pytorch", allocator_settings, budget, tiers = "host", robust, executable, observed, output,
                                                  format = "table", objective = "time";
  FrameworkOptions framework;
  std::uint32_t ranks = 0;
  std::int64_t global_batch = 0;
  unsigned jobs = 0;
  bool no_recompute = false, no_smallest = false, full = false, accept_gaps = false, one_line = false;
};

constexpr int kDoesNotFit = 3;

AdviceRequest request_of(const PlanOptions& o) {
  AdviceRequest request;
  request.scenario.step = o.files;
  request.scenario.execution_traces = o.execution_traces;
  request.scenario.onto = o.onto;
  request.scenario.measured_on = o.measured_on;
  request.scenario.machine = o.machine;
  request.scenario.settings = o.settings;
  request.scenario.policies = o.policies;
  request.scenario.executable = o.executable;
  request.scenario.allocator = o.allocator;
  request.scenario.allocator_settings = o.allocator_settings;
  request.budget = o.budget;
  request.tiers = o.tiers;
  if (o.no_recompute) request.settings += "recompute=0";
  if (!o.robust.empty()) request.settings += fmt::format("{}robust={}", request.settings.empty() ? "" : ",", o.robust);
  request.ranks = o.ranks;
  request.smallest = !o.no_smallest;
  request.jobs = o.jobs > 0 ? o.jobs : std::max(1u, std::thread::hardware_concurrency());
  return request;
}

// The plan that the last of these policies makes, as a file, as `memwall run --plan-out` writes it.
void write_plan_of(const PlanOptions& o, Study& study, Scenario scenario, const std::vector<std::string>& policies) {
  if (o.output.empty()) return;
  scenario.policies.insert(scenario.policies.end(), policies.begin(), policies.end());
  const PlannedStep planned = study.plan(scenario);
  const std::string text = plan_text(planned, study.run(scenario, {.record = false}).run);
  write_output(o.output, [&](std::ostream& out) { out << text; });
}

// As it was simulated: a plan on a GPU whose memory for the step is the budget (study/advised_plan.h).
void print_line_of(const PlanOptions& o, Scenario scenario, const std::vector<std::string>& policies, Bytes budget) {
  scenario.policies.insert(scenario.policies.end(), policies.begin(), policies.end());
  if (!policies.empty()) scenario.budget = fmt::format("{}B", budget);
  print(one_line(scenario, o.accept_gaps) + "\n");
}

void check_objective(const PlanOptions& o) {
  if (o.objective != "time" && o.objective != "batch")
    throw UsageError(fmt::format("--objective {}: expected time (the shortest step) or batch (the most samples).{}",
                                 o.objective, did_you_mean(o.objective, {"time", "batch"})));
}

// What was asked for, with what was measured fed back.
struct PlanQuestion {
  AdviceRequest request;
  std::optional<Table> observed{};
  std::vector<std::string> sentences{};  // what was measured, and what follows
};

PlanQuestion question_of(const PlanOptions& o, Study& study, Watch& watch) {
  PlanQuestion question{request_of(o)};
  if (o.observed.empty()) return question;
  const Observation observation = observe(study, question.request.scenario, o.observed, &watch);
  const Bytes asked = budget_bytes(study, question.request);
  question.request = corrected(study, question.request, observation);
  question.sentences =
      observation_sentences(observation, given_size(o.budget, asked), budget_bytes(study, question.request));
  question.observed = observation_table(observation);
  return question;
}

void print_advice(const PlanOptions& o, std::vector<Table> tables, const PlanQuestion& question, Format format) {
  std::vector<std::vector<Cell>>& answer = tables.front().rows;
  for (const std::string& sentence : question.sentences)
    if (!sentence.empty()) answer.push_back({cell(sentence)});
  if (question.observed) tables.insert(tables.begin() + 1, *question.observed);
  print_beside(o.output, screen_text(std::move(tables), format, o.full));
}

int plan_largest_batch(const PlanOptions& o, Study& study, const PlanQuestion& question, Watch& watch, Format format) {
  const BatchAdvice advice = advise_batch(study, question.request, &watch);
  const bool fits = advice.largest.probe.samples > 0;
  if (fits) write_plan_of(o, study, advice.largest.scenario, {advice.largest.policy});
  if (!o.one_line)
    print_advice(o, batch_advice_tables(advice), question, format);
  else if (fits)
    print_line_of(o, advice.largest.scenario, {advice.largest.policy}, advice.budget);
  if (fits) return 0;
  print_error("memwall plan: no plan was found for {} within {} with {} either, the smallest size.\n", o.files.front(),
              given_size(advice.given_budget, advice.budget),
              counted_text(static_cast<std::uint64_t>(advice.found.refused), "sample"));
  return kDoesNotFit;
}

int plan_shortest_step(const PlanOptions& o, Study& study, const PlanQuestion& question, Watch& watch, Format format) {
  const StepAdvice advice = advise(study, question.request, &watch);
  const AdvisedPlan& best = advice.plans.front();
  // A step that fits as it is has a plan, too: an empty one.
  write_plan_of(
      o, study, advice.scenario,
      best.policies.empty() ? std::vector{own_policy(question.request, question.request.budget)} : best.policies);
  if (o.one_line)
    print_line_of(o, advice.scenario, best.policies, advice.budget);
  else
    print_advice(o, advice_tables(advice), question, format);
  if (best.fits) return 0;
  print_error("memwall plan: no plan was found for {} within {}; {} are missing{}.\n", o.files.front(),
              given_size(advice.given_budget, advice.budget), human_bytes(best.missing),
              advice.smallest.bytes > 0 ? fmt::format(", and the smallest budget that a plan was found for is {}",
                                                      human_bytes(advice.smallest.bytes))
                                        : "");
  return kDoesNotFit;
}

int plan_step_of(const PlanOptions& o) {
  check_objective(o);
  require_plan_words(o.budget, o.robust);
  require_plannable(o.policies);
  const Format format = parse_format(o.format);
  TerminalWatch watch("planning");
  Study study(&watch);
  const LoadedStep loaded = study.load(request_of(o).scenario);
  require_replay(o.files.front(), *loaded.trace, o.accept_gaps);
  if (!o.output.empty()) {
    require_harmless(o.output, loaded.files);
    if (o.output != "-") (void)FileWriter(o.output);  // told before a long search
  }
  const PlanQuestion question = question_of(o, study, watch);
  return o.objective == "batch" ? plan_largest_batch(o, study, question, watch, format)
                                : plan_shortest_step(o, study, question, watch, format);
}

// What has no meaning where layouts are searched.
void refuse_beside_layouts(const PlanOptions& o) {
  const PlanOptions unsaid;
  const std::pair<const char*, bool> said[] = {{"--output", !o.output.empty()},
                                               {"--policy", !o.policies.empty()},
                                               {"--objective", o.objective != unsaid.objective},
                                               {"--tiers", o.tiers != unsaid.tiers},
                                               {"--ranks", o.ranks != 0},
                                               {"--robust", !o.robust.empty()},
                                               {"--no-recompute", o.no_recompute},
                                               {"--no-smallest", o.no_smallest},
                                               {"--allocator", o.allocator != unsaid.allocator},
                                               {"--alloc-conf", !o.allocator_settings.empty()},
                                               {"--executable", !o.executable.empty()},
                                               {"--measured-on", !o.measured_on.empty()},
                                               {"--onto", !o.onto.empty()},
                                               {"--et", !o.execution_traces.empty()},
                                               {"--observed", !o.observed.empty()}};
  for (const auto& [option, is_said] : said)
    if (is_said)
      throw UsageError(fmt::format(
          "{} has no meaning with --gpus and a workload's name, whose layouts are searched; leave it out.", option));
}

// The step that is planned, on which machine.
void add_step_options(CLI::App& app, PlanOptions& o) {
  app.add_option("step", o.files, "A trace, a capture, or a workload's name (memwall help run)");
  add_framework_options(app, o.framework);
  app.add_option("--et", o.execution_traces, "ExecutionTrace of the same run, beside a Kineto capture; repeatable")
      ->allow_extra_args(false);
  add_onto_option(app, o.onto);
  add_gaps_option(app, o.accept_gaps);
  app.add_option("--machine", o.machine, "A machine's name or file; default: the one the step was measured on");
  app.add_option("--measured-on", o.measured_on, "The machine of the step's durations, where it does not say it");
  app.add_option("--set", o.settings, "Override a number of the machine: gpu.hbm.bandwidth=4TB/s; repeatable")
      ->allow_extra_args(false);
  app.add_option("--policy", o.policies, "What is done to the step before it is planned: NAME:key=value; repeatable")
      ->allow_extra_args(false);
}

// What a plan keeps to, and may do.
void add_plan_options(CLI::App& app, PlanOptions& o) {
  app.add_option("--budget", o.budget,
                 "Device memory that the step's storages may take, or a share of the device: 24GiB, 60%; default: all");
  add_allocator_options(app, o.allocator, o.allocator_settings);
  app.add_option("--tiers", o.tiers, "Where storages may wait, the first preferred: host+nvme")->capture_default_str();
  app.add_flag("--no-recompute", o.no_recompute, "Run nothing again");
  app.add_option("--robust", o.robust,
                 "Plan as if every link were slower by this share (20%): copies then wait for nothing where links are "
                 "that much slower in practice; the figures are of the machine as it is");
  app.add_option("--executable", o.executable, "Only what this executes: torch");
  app.add_option("--objective", o.objective,
                 "time: the shortest step; batch: the largest batch that a plan is found for within the budget, and "
                 "of those tried the one with the most samples per second")
      ->capture_default_str();
  app.add_option("--observed", o.observed,
                 "What was measured of this step without a plan: a memory snapshot, or a torch.profiler trace. More "
                 "memory than simulated lowers the budget, times are scaled, and then it is planned");
}

// What is looked for besides one plan, and how the answer is given.
void add_answer_options(CLI::App& app, PlanOptions& o) {
  app.add_option("--ranks", o.ranks,
                 "Data-parallel GPUs: stages 0 to 3 of ZeRO are compared, of a generated step in other micro-batches, "
                 "too; 1: micro-batches alone")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--global-batch", o.global_batch,
                 "With --gpus and a workload's name: sequences of a step of the whole job. Its layouts are searched: "
                 "tensor, pipeline and data parallelism, interleaving, micro-batch, recomputation")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{100'000'000}));
  app.add_flag("--no-smallest", o.no_smallest,
               "Do not look for the smallest budget that fits, which takes a dozen plans");
  app.add_option("--jobs", o.jobs, "Threads; default: all that there are. The answer is the same for any number")
      ->check(CLI::Range(1, 1024));
  app.add_option("-o,--output", o.output, "Write the recommended plan, for --plan, memwall_apply and emit");
  app.add_option("--format", o.format, "table, json, csv or md")->capture_default_str();
  app.add_flag("--full", o.full, "Print every table and every note; json and csv hold all of them anyway");
  add_one_line_option(app, o.one_line, "the recommended plan's step");
}

}  // namespace

Verb add_plan(CLI::App& parent) {
  auto o = std::make_shared<PlanOptions>();
  CLI::App* app =
      parent.add_subcommand("plan", "Recommend a memory plan within a budget, and say how near the best it is");
  add_step_options(*app, *o);
  add_plan_options(*app, *o);
  add_answer_options(*app, *o);
  app->footer(
      "Each plan is simulated with PyTorch's allocator; the bound holds for any plan that moves or computes again "
      "whole\n"
      "storages, step after step. Exit code 3: no plan was found that fits. docs/planning.md explains the tables.\n\n"
      "Examples:\n"
      "  memwall plan llama3-8b:batch=1,sequence=8192,precision=bf16 --machine h100-sxm-80gb\n"
      "  memwall plan step.mwt --budget 24GiB -o plan.json\n"
      "  memwall plan step.mwt --budget 60% --tiers host+nvme --format json\n"
      "  memwall plan step.mwt --objective batch --budget 24GiB\n"
      "  memwall plan step.mwt --observed snapshot.pickle          # memory as it was measured\n"
      "  memwall plan gpt2-124m:batch=16 --machine a100-sxm-40gb --ranks 8\n"
      "  memwall plan gpt3-175b --machine dgx-a100-80gb --gpus 512 --global-batch 1536   # layouts");
  return {app, [o] {
            const bool layouts = o->framework.gpus > 0 && !o->framework.any();
            if (layouts) refuse_beside_layouts(*o);
            if (layouts)
              return plan_layouts({o->files, o->settings, o->machine, o->budget, o->format, o->framework.gpus,
                                   o->global_batch, o->jobs, o->full, o->one_line});
            if (o->global_batch > 0)
              throw UsageError("--global-batch goes with --gpus and a workload's name, whose layouts are searched.");
            take_framework(o->framework, "plan", o->files, o->policies);
            return plan_step_of(*o);
          }};
}

}  // namespace memwall
