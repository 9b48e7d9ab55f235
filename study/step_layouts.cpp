#include "study/step_layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <tuple>

#include "models/workload/generate/configuration/workload_file.h"
#include "policies/batch/batch_request.h"
#include "policies/cycle/cycle_of_step.h"
#include "policies/cycle/plan_certificate.h"
#include "sim/error.h"
#include "sim/trace/ranks.h"
#include "sim/trace/step_count.h"
#include "study/parallel_tasks.h"
#include "study/step_text.h"
#include "study/workload_file.h"

namespace memwall {
namespace {

constexpr std::size_t kMicroBatches = 5;
constexpr std::size_t kTogether = 2;  // layouts that are planned before the next decision
constexpr Duration kNeverFits = Duration::max();

// What the step's name says: "gpt2-124m:batch=8". Nothing for what is no generated step.
std::optional<TrainingJob> job_of(const Scenario& scenario) {
  if (scenario.step.size() != 1 || kind_of_workload(scenario.step.front()) != "generated step") return std::nullopt;
  for (const std::string& policy : scenario.policies)
    if (batch_request(parse_policy(policy))) return std::nullopt;  // it sets the samples of a pass itself
  return load_training_job(scenario.step.front());
}

// All samples of an update in one pass, in two, in four, ...; the given one among them.
std::vector<std::int64_t> micro_batches(std::int64_t given, std::int64_t samples) {
  std::vector<std::int64_t> all{given};
  for (std::int64_t batch = samples; all.size() < kMicroBatches; batch /= 2) {
    if (batch != given) all.push_back(batch);
    if (batch % 2 != 0) break;
  }
  return all;
}

// "gpt2-124m:batch=8,layers=4" at 2 samples a pass: "gpt2-124m:layers=4,batch=2,accumulation=4".
std::string in_passes(const std::string& step, std::int64_t batch, std::int64_t passes) {
  constexpr std::array<std::string_view, 2> kOfPasses = {"batch", "accumulation"};
  const std::string others = without_settings(step, kOfPasses);
  return others + (settings_said(others).empty() ? ":" : ",") + fmt::format("batch={},accumulation={}", batch, passes);
}

std::vector<StepLayout> in_micro_batches(const Scenario& scenario) {
  const std::optional<TrainingJob> job = job_of(scenario);
  StepLayout as_given;
  as_given.scenario = scenario;
  if (!job) return {as_given};
  std::vector<StepLayout> all;
  const std::int64_t given = job->recipe.batch, samples = given * job->recipe.accumulation;
  for (const std::int64_t batch : micro_batches(given, samples)) {
    StepLayout layout = as_given;
    layout.micro_batch = batch;
    layout.passes = samples / batch;
    std::string& step = layout.scenario.step.front();
    if (batch != given) step = in_passes(step, batch, layout.passes);
    all.push_back(std::move(layout));
  }
  return all;
}

// What is known before anything is planned.
void simulate_unplanned(Study& study, StepLayout& layout, const LayoutPlanning& planning) {
  try {
    layout.unplanned = simulated_plan(study, layout.scenario, {}, planning.budget);
    if (layout.unplanned.fits) return;
    const PreparedStep step = study.prepare(layout.scenario);
    const PlanCertificate c = plan_certificate(StepProfile(*step.trace, *step.machine), planning.budget,
                                               links_of_machine(*step.machine, planning.tiers));
    layout.bound = c.least_budget > planning.budget
                       ? kNeverFits
                       : from_seconds(c.joint_seconds) / static_cast<std::int64_t>(step_count(*step.trace));
  } catch (const UsageError& error) {
    layout.refusal = error.what();
  } catch (const InfeasibleError& error) {
    layout.refusal = error.what();
  }
}

void plan_layout(Study& study, StepLayout& layout, const LayoutPlanning& planning) {
  try {
    layout.planned = simulated_plan(study, layout.scenario, {planning.policy}, planning.budget);
  } catch (const UsageError& error) {
    layout.refusal = error.what();
  }
}

auto rank_of(const StepLayout& layout) {
  const AdvisedPlan& best = layout.best();
  return std::tuple(!layout.refusal.empty(), !best.fits, best.fits ? 0 : best.missing, best.step_time);
}

}  // namespace

std::vector<StepLayout> layouts_of(Study& study, const Scenario& scenario, std::uint32_t ranks) {
  for (const std::string& policy : scenario.policies)
    if (parse_policy(policy).info->name == "zero")
      throw UsageError(fmt::format("--ranks tries the stages of ZeRO itself; leave out --policy {}.", policy));
  const LoadedStep loaded = study.load(scenario);
  if (!loaded.trace->rank_table.empty())
    throw UsageError(
        fmt::format("--ranks {}: {} holds {} ranks' programs, to lay these out anew is not implemented; "
                    "expected a step of one rank.",
                    ranks, loaded.trace->name, rank_count(*loaded.trace)));
  const std::vector<StepLayout> micro = in_micro_batches(scenario);
  if (ranks == 1) return micro;
  std::vector<StepLayout> all;
  for (int stage = 0; stage <= 3; ++stage)
    for (StepLayout layout : micro) {
      layout.zero_stage = stage;
      layout.scenario.policies.push_back(fmt::format("zero:stage={},ranks={}", stage, ranks));
      all.push_back(std::move(layout));
    }
  return all;
}

void compare_layouts(Study& study, std::vector<StepLayout>& layouts, const LayoutPlanning& planning) {
  std::vector<std::function<void()>> tasks;
  for (StepLayout& layout : layouts) tasks.emplace_back([&] { simulate_unplanned(study, layout, planning); });
  run_tasks(tasks, planning.jobs);
  if (std::all_of(layouts.begin(), layouts.end(), [](const StepLayout& l) { return !l.refusal.empty(); }))
    throw UsageError(layouts.front().refusal);
  std::vector<StepLayout*> waiting;
  Duration best = kNeverFits;
  for (StepLayout& layout : layouts) {
    if (!layout.refusal.empty()) continue;
    if (layout.unplanned.fits)
      best = std::min(best, layout.unplanned.step_time);
    else
      waiting.push_back(&layout);
  }
  std::stable_sort(waiting.begin(), waiting.end(),
                   [](const StepLayout* a, const StepLayout* b) { return a->bound < b->bound; });
  for (std::size_t begin = 0; begin < waiting.size() && waiting[begin]->bound < best; begin += kTogether) {
    tasks.clear();
    const std::size_t end = std::min(begin + kTogether, waiting.size());
    for (std::size_t i = begin; i < end; ++i)
      if (waiting[i]->bound < best) tasks.emplace_back([&, i] { plan_layout(study, *waiting[i], planning); });
    run_tasks(tasks, planning.jobs);
    for (std::size_t i = begin; i < end; ++i)
      if (waiting[i]->planned && waiting[i]->planned->fits) best = std::min(best, waiting[i]->planned->step_time);
  }
  std::stable_sort(layouts.begin(), layouts.end(),
                   [](const StepLayout& a, const StepLayout& b) { return rank_of(a) < rank_of(b); });
}

}  // namespace memwall
