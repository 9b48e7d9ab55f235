#include "study/further_runs.h"

#include <utility>

#include "sim/error.h"
#include "study/alone_step.h"
#include "study/first_step.h"
#include "study/steady_writes.h"
#include "study/step_bounds.h"
#include "traces/run/run_recorder.h"

namespace memwall {

Run FurtherRuns::on(SharedTrace trace, const Machine& machine) const {
  return run_again(std::move(trace), machine, settings_);
}

void FurtherRuns::add(const RunOptions& options, Run& run) const {
  if (options.settle_writes) {
    try {
      run.steady_step = steady_step(run, [this](std::vector<double> cached) { return with_caches(std::move(cached)); });
    } catch (const UsageError&) {  // full drives are too slow for its end to be counted: nothing to tell
    }
  }
  if (options.try_alone) {
    const auto on_machine = [this](const Machine& machine) { return on(step_.trace, machine); };
    run.alone_step = alone_step(run, on_machine);
    run.contended_steps = contended_steps(run, on_machine);
  }
  if (options.try_first_step) run.first_step = first_step(run, [this] { return of_first_step(); });
  if (options.bound_step)
    run.step_bounds = step_bounds(run, [this](SharedTrace trace) { return on(std::move(trace), *step_.machine); });
}

Run FurtherRuns::run_again(SharedTrace trace, const Machine& machine, RunSettings settings) const {
  const std::unique_ptr<Pager> pager = make_pager_();
  settings.pager = pager.get();
  settings.observer = nullptr;
  settings.record = false;
  return simulate_and_record(std::move(trace), machine, settings);
}

Run FurtherRuns::with_caches(std::vector<double> cached) const {
  RunSettings settings = settings_;
  settings.cached = std::move(cached);
  return run_again(step_.trace, *step_.machine, std::move(settings));
}

Run FurtherRuns::of_first_step() const {
  RunSettings settings = settings_;
  settings.first_step = true;
  return run_again(step_.trace, *step_.machine, std::move(settings));
}

}  // namespace memwall
