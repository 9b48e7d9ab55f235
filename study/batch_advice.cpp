#include "study/batch_advice.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "policies/trace/phases.h"
#include "sim/error.h"
#include "study/batch_search.h"

namespace memwall {
namespace {

constexpr const char* kOption = "--objective batch";
constexpr std::int64_t kMostSamples = std::int64_t{1} << 30;
constexpr std::size_t kMostProbes = 24;

Scenario with_policy(Scenario scenario, const std::string& policy) {
  scenario.policies.push_back(policy);
  return scenario;
}

// The size with a plan that is searched for, or with the first one where that is as good.
PlannedBatch searched(Study& study, const AdviceRequest& request, Bytes budget, const BatchProbe& first) {
  BatchSearch alone(request.scenario, kOption, study, nullptr);
  PlannedBatch planned{alone.at(first.samples), first, own_policy(request, request.budget, "search=0")};
  const std::string policy = own_policy(request, request.budget);
  BatchSearch search(with_policy(request.scenario, policy), kOption, study, nullptr, budget);
  const BatchProbe better = search(first.samples, nullptr);
  if (!better.fits || better.step_time > first.step_time) return planned;
  planned.probe = better;
  planned.policy = policy;
  return planned;
}

}  // namespace

BatchAdvice advise_batch(Study& study, const AdviceRequest& request, Watch* watch) {
  if (request.ranks > 0)
    throw UsageError(
        "--objective batch with --ranks: not implemented; expected the stage beside it, as --policy "
        "zero:stage=1,ranks=8.");
  BatchAdvice advice;
  Scenario scenario = with_policy(request.scenario, own_policy(request, request.budget, "search=0"));
  advice.given_budget = request.budget;
  advice.budget = budget_bytes(study, request);
  BatchSearch search(scenario, kOption, study, watch, advice.budget);
  const LoadedStep loaded = study.load(scenario);
  search.require_samples(*loaded.trace);
  const std::int64_t unit = passes_per_step(*loaded.trace);
  advice.found = find_largest_batch(unit, kMostSamples, std::ref(search), kMostProbes);
  const LargestBatch& found = advice.found;
  advice.is_cut_short = found.refused - found.largest > unit;
  const BatchProbe *largest = nullptr, *fastest = nullptr;
  for (const BatchProbe& probe : found.probes) {
    if (!probe.fits) continue;
    if (largest == nullptr || probe.samples > largest->samples) largest = &probe;
    if (fastest == nullptr || samples_per_second(probe) > samples_per_second(*fastest)) fastest = &probe;
  }
  if (largest == nullptr) return advice;
  advice.largest = searched(study, request, advice.budget, *largest);
  advice.fastest = fastest == largest ? advice.largest : searched(study, request, advice.budget, *fastest);
  if (samples_per_second(advice.largest.probe) > samples_per_second(advice.fastest.probe))
    advice.fastest = advice.largest;
  return advice;
}

}  // namespace memwall
