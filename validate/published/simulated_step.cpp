#include "validate/published/simulated_step.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "models/hw/machine_file.h"
#include "models/workload/generate/generate.h"
#include "study/study.h"
#include "traces/run/analysis/summary.h"

namespace memwall {
namespace {

Machine machine_of(const PublishedCase& one) {
  Machine machine = load_machine(one.machine, one.settings);
  machine = with_products(std::move(machine), one.constants.products);
  return with_network(std::move(machine), one.constants.network);
}

Run run_of(Study& study, const PublishedCase& one, const std::vector<std::string>& policies, bool bound_step) {
  Scenario scenario{.step = {"job"}, .machine = "cluster", .policies = with_hooks(policies, one.constants.host)};
  scenario.allocator_settings = one.alloc_conf;
  if (one.constants.host != 1) scenario.scale.push_back(scale_text(one.constants));
  return study.run(scenario, {.record = false, .bound_step = bound_step}).run;
}

// The 80 % interval, and the one of a program to which constants were fitted.
void set_interval(const StepInterval& interval, Duration step_time, SimulatedStep& s) {
  s.job = interval.job, s.host = interval.host;
  s.low = to_seconds(interval.low), s.high = to_seconds(interval.high);
  const StepInterval fitted = interval.job ? with_fitted_constants(interval, step_time) : interval;
  s.low_fitted = to_seconds(fitted.low), s.high_fitted = to_seconds(fitted.high);
}

SimulatedStep figures_of(const Run& run) {
  const RunSummary summary = summarize(run);
  SimulatedStep s;
  s.fits = summary.fits;
  s.seconds = to_seconds(summary.step_time);
  if (summary.step_interval) set_interval(*summary.step_interval, summary.step_time, s);
  const TierSummary& hbm = summary.tiers[static_cast<std::size_t>(run.machine.tier("hbm"))];
  s.peak = static_cast<double>(hbm.peak_allocated);
  s.reserved = static_cast<double>(hbm.peak_reserved);
  if (summary.device_memory) {
    s.peak = static_cast<double>(summary.device_memory->allocated_in_all());
    s.reserved = static_cast<double>(summary.device_memory->reserved_in_all());
    s.on_device = static_cast<double>(summary.device_memory->shown());
  }
  if (summary.top.flops) s.seconds_at_peak = summary.top.flops->mfu * s.seconds;
  return s;
}

SimulatedStep simulated_in_full(const PublishedCase& one, WrittenSteps& steps) {
  Study study;
  study.add_step("job", steps.of(one.job));
  study.add_machine("cluster", machine_of(one));
  SimulatedStep s = figures_of(run_of(study, one, one.policies, true));
  for (const std::vector<std::string>& policies : one.policies_where_needed) {
    if (s.fits) break;
    s = figures_of(run_of(study, one, policies, true));
  }
  s.batch = one.job.recipe.batch;
  return s;
}

// Memory is told by the last of three steps, in which passes forward and backward alternate once.
GrownStep grown_step(const PublishedCase& one, WrittenSteps& steps) {
  const ModelParallel& parallel = one.job.recipe.parallel;
  const Machine machine = machine_of(one);
  std::optional<Run> last;
  const auto seconds = [&](std::int64_t passes) {
    PublishedCase tried = one;
    tried.job.recipe.accumulation = passes;
    Study study;
    study.add_step("job", steps.of(tried.job));
    study.add_machine("cluster", machine);
    last = run_of(study, tried, one.policies, false);
    return to_seconds(mean_step(*last));
  };
  GrownStep grown;
  // An interleaved pipeline takes whole groups of as many micro-batches as GPUs.
  const bool groups = parallel.interleave > 1;
  grown.growth = step_growth(one.job.recipe.accumulation,
                             groups ? parallel.pipeline : std::max<std::int64_t>(2, parallel.pipeline - 1),
                             groups ? parallel.pipeline : 1, seconds);
  grown.few = figures_of(*last);
  grown.few.batch = one.job.recipe.batch;
  return grown;
}

SimulatedStep simulated_by_growth(const PublishedCase& one, WrittenSteps& steps, GrownSteps& grown) {
  return grown.of(one, [&] { return grown_step(one, steps); }).at(one.job.recipe.accumulation);
}

SimulatedStep simulated_with_its_batch(const PublishedCase& one, WrittenSteps& steps, GrownSteps& grown) {
  const bool is_long = is_divided(one) && one.policies.empty();
  return is_long ? simulated_by_growth(one, steps, grown) : simulated_in_full(one, steps);
}

}  // namespace

SharedTrace WrittenSteps::of(const TrainingJob& job) {
  SharedTrace& step = steps_[{job.recipe.batch, job.recipe.accumulation}];
  if (step->ops.empty()) step = generate_step(job.model, job.recipe);
  return step;
}

bool is_divided(const PublishedCase& one) {
  return one.job.recipe.parallel.tensor > 1 || one.job.recipe.parallel.pipeline > 1;
}

SimulatedStep simulated(const PublishedCase& one, WrittenSteps& steps, GrownSteps& grown) {
  if (one.batches.empty()) return simulated_with_its_batch(one, steps, grown);
  SimulatedStep s;
  PublishedCase tried = one;
  for (const std::int64_t batch : one.batches) {
    tried.job.recipe.batch = batch;
    s = simulated_with_its_batch(tried, steps, grown);
    if (s.fits) break;
  }
  return s;
}

}  // namespace memwall
