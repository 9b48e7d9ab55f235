#include "study/batch_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/error.h"
#include "sim/policy/registry.h"

namespace memwall {

BatchSearch::BatchSearch(Scenario scenario, std::string option, Study& study, Watch* watch, Bytes device_bytes)
    : study_(study),
      watch_(watch),
      option_(std::move(option)),
      scenario_(std::move(scenario)),
      device_bytes_(device_bytes) {
  std::vector<std::string> others;
  for (const std::string& text : scenario_.policies) {
    const auto batch = batch_request(parse_policy(text));
    if (!batch) {
      others.push_back(text);
      continue;
    }
    if (batch->samples != 0 || batch->tokens != 0)
      throw UsageError(batch->captured == 0
                           ? fmt::format("{} tries batches itself; leave out --policy {}.", option_, text)
                           : fmt::format("{} tries batches itself; instead of --policy {} expected --policy {}.",
                                         option_, text, batch_policy({.captured = batch->captured})));
    batch_ = *batch;  // of a step that does not say how many samples it has
  }
  scenario_.policies = std::move(others);
}

void BatchSearch::require_samples(const Trace& trace) const {
  if (trace.samples_per_step == 0 && batch_.captured == 0)
    throw UsageError(
        fmt::format("{}: trace '{}' does not say how many samples a step has; expected --policy "
                    "batch:from=N beside it, where N are those of the capture.",
                    option_, trace.name));
}

Scenario BatchSearch::at(std::int64_t samples) const {
  Scenario scenario = scenario_;
  BatchRequest batch = batch_;
  batch.samples = samples;
  scenario.policies.push_back(batch_policy(batch));
  return scenario;
}

BatchProbe BatchSearch::operator()(std::int64_t samples, std::optional<BatchLimit>* limit) {
  const Run run = study_.run(at(samples), {.record = false, .device_bytes = device_bytes_}).run;
  if (!run.result.fits && limit != nullptr) *limit = limit_of(run.trace, run.machine, run.result);
  constexpr double kUsualProbes = 20;
  if (watch_ != nullptr) watch_->searched(std::min(0.99, ++probes_ / kUsualProbes));
  BatchProbe probe = probe_of(samples, run.trace->ranks, run.machine, run.result);
  if (run.trace->samples_per_step > 0) probe.passes = run.trace->samples_per_step / static_cast<double>(samples);
  for (const MemoryBudget& budget : run.trace->budgets) {
    probe.fits = probe.fits && budget.over == 0;
    probe.missing = std::max(probe.missing, budget.over);
  }
  return probe;
}

}  // namespace memwall
