#include "study/remedies.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "policies/batch/batch_request.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "study/policy_text.h"

namespace memwall {
namespace {

constexpr std::size_t kMostRemedies = 6;
constexpr std::size_t kNearest = 2;  // of those that do not fit either, where nothing does
constexpr int kGpusPerNode = 8;

const char* const kCheckpoint = "checkpoint:mode=full";
const char* const kOffloadOptimizer = "offload:what=optimizer,to=host";
const char* const kOffloadParameters = "offload:what=parameters,to=host";
const char* const kExpandable = "expandable_segments:True";
const char* const kOffloadActivations = "offload:what=activations,to=host";
// They keep to the GPU's memory by themselves.
const char* const kPlanners[] = {"rotor", "capuchin"};
const char* const kPlan = "plan";

struct Remedy {
  Scenario scenario;
  std::string options;
  bool same_gpu = true;  // and the same batch
};

struct TriedRemedy {
  TriedChange change;
  bool same_gpu = true;
  // It does not fit with the first plans of planners that search for better ones: what it lacks with these is not
  // known.
  std::optional<Remedy> unsearched{};
};

// With any plan that fits in the place of the best one, where a planner can be asked for that; the same scenario where
// none can. Where that does not fit, a search would hardly find one that does.
Scenario with_any_plans(Scenario scenario) {
  for (std::string& policy : scenario.policies) {
    const PolicySpec spec = parse_policy(policy);
    const auto takes = [&](const char* parameter) {
      return std::ranges::any_of(spec.info->parameters, [&](const ParameterInfo& p) { return p.name == parameter; }) &&
             !spec.arguments.is_set(parameter);
    };
    if (!takes("any")) continue;
    policy = with_parameters(policy, takes("search") ? "search=0,any=1" : "any=1");
  }
  return scenario;
}

class Remedies {
 public:
  Remedies(const Run& refused, const Scenario& scenario) : run_(refused), scenario_(scenario) {}

  // Does a planner decide about the step as it is asked for?
  bool plans_already() const {
    return !run_.trace->budgets.empty() || has(kPlan) ||
           std::any_of(std::begin(kPlanners), std::end(kPlanners), [&](const char* planner) { return has(planner); });
  }

  // Each of them alone.
  std::vector<Remedy> single() const {
    std::vector<Remedy> all;
    if (expands()) add(all, {}, true, true);
    if (!run_.trace->knowledge.dataflow) return all;
    add(all, {kOffloadOptimizer});
    if (!plans_already())
      for (const char* planner : kPlanners) add(all, {planner});
    if (const auto half = half_batch()) add(all, {*half}, false);
    for (int stage = 1; stage <= 3 && runs_on_one_gpu(); ++stage)
      add(all, {fmt::format("zero:stage={},ranks={}", stage, kGpusPerNode)}, false);
    return all;
  }

  // What may be done to a part of the step: of these the least part that is enough.
  std::vector<std::string> divisible() const {
    if (!run_.trace->knowledge.dataflow) return {};
    return {kCheckpoint, kOffloadActivations};
  }

  // With `fraction` of it. Nothing where the scenario has that policy already.
  std::optional<Remedy> part_of(const std::string& policy, double fraction) const {
    std::vector<Remedy> one;
    add(one, {fraction < 1 ? fmt::format("{},fraction={}", policy, fraction) : policy});
    return one.empty() ? std::nullopt : std::optional(one.front());
  }

  std::vector<Remedy> together() const {
    std::vector<Remedy> all;
    if (!run_.trace->knowledge.dataflow) return all;
    add(all, {kCheckpoint, kOffloadOptimizer});
    add(all, {kCheckpoint, kOffloadActivations});
    add(all, {kCheckpoint, kOffloadActivations, kOffloadOptimizer});
    add(all, {kCheckpoint, kOffloadParameters, kOffloadOptimizer});
    if (half_batch())
      add(all, {kCheckpoint, kOffloadParameters, kOffloadOptimizer, batch_policy({.samples = 1})}, false);
    if (expands()) add(all, {kCheckpoint}, true, true);
    if (const auto half = half_batch()) {
      add(all, {kCheckpoint, *half}, false);
      add(all, {kCheckpoint, kOffloadActivations, *half}, false);
    }
    if (!runs_on_one_gpu()) return all;
    const std::string sharded = fmt::format("zero:stage=3,ranks={}", kGpusPerNode);
    add(all, {kCheckpoint, sharded}, false);
    add(all, {kCheckpoint, sharded, kOffloadOptimizer}, false);
    return all;
  }

 private:
  static std::string_view name_of(std::string_view policy) { return policy.substr(0, policy.find(':')); }

  bool has(std::string_view name) const {
    return std::any_of(scenario_.policies.begin(), scenario_.policies.end(),
                       [&](const std::string& policy) { return name_of(policy) == name; });
  }

  // Unless the scenario has one of them already.
  void add(std::vector<Remedy>& all, const std::vector<std::string>& policies, bool same_gpu = true,
           bool expandable = false) const {
    Remedy remedy{scenario_, "", same_gpu};
    for (const std::string& policy : policies) {
      if (has(name_of(policy))) return;
      remedy.scenario.policies.push_back(policy);
      remedy.options += (remedy.options.empty() ? "--policy " : " --policy ") + policy;
    }
    if (expandable) {
      remedy.scenario.allocator_settings = kExpandable;
      remedy.options += std::string(remedy.options.empty() ? "" : " ") + "--alloc-conf " + kExpandable;
    }
    all.push_back(std::move(remedy));
  }

  // The allocator has a setting that nobody has set.
  bool expands() const { return scenario_.allocator == "pytorch" && scenario_.allocator_settings.empty(); }
  bool runs_on_one_gpu() const { return run_.trace->ranks <= 1 && run_.trace->rank_table.empty(); }

  std::optional<std::string> half_batch() const {
    const auto samples = static_cast<std::int64_t>(run_.trace->samples_per_step);
    if (samples < 2 || !scenario_.second_size.empty()) return std::nullopt;
    for (const std::string& policy : scenario_.policies)
      if (batch_request(parse_policy(policy))) return std::nullopt;
    return batch_policy({.samples = samples / 2});
  }

  const Run& run_;
  const Scenario& scenario_;
};

TriedChange tried(const std::string& options, const Run& run) {
  TriedChange change{options, run.result.fits && run.trace->keeps_to_budgets(), 0, "", 0, mean_step(run), 0};
  if (change.step_time.count() > 0)
    change.samples_per_second = run.trace->samples_per_step * run.trace->ranks / to_seconds(change.step_time);
  for (std::size_t t = 0; t < run.result.tiers.size(); ++t) {
    const TierResult& result = run.result.tiers[t];
    if (run.machine.tiers[t].tier_class == TierClass::device)
      change.peak_reserved = std::max(change.peak_reserved, result.peak_reserved);
    if (result.missing > change.missing) {
      change.missing = result.missing;
      change.missing_in = run.machine.tiers[t].name;
    }
  }
  for (const MemoryBudget& budget : run.trace->budgets)
    if (budget.over > change.missing) {
      change.missing = budget.over;
      change.missing_in = "budget of " + budget.policy;
    }
  return change;
}

bool any_fits_here(const std::vector<TriedRemedy>& all) {
  return std::any_of(all.begin(), all.end(), [](const TriedRemedy& r) { return r.same_gpu && r.change.fits; });
}

// All of it, and the least part that fits, to a sixteenth: by halving where all of it fits. Where it does not (all that
// leaves the GPU may be too much for the host) four parts are looked at, and then between the last two.
template <typename Try>
void try_parts(const Try& fits_with) {
  constexpr double kLeast = 1.0 / 16;
  double enough = fits_with(1.0) ? 1.0 : 0, too_little = 0;
  for (const double part : {0.75, 0.5, 0.25}) {
    if (enough > 0) break;
    if (fits_with(part)) enough = part;
  }
  while (enough > 0 && enough - too_little > kLeast) {
    const double middle = (enough + too_little) / 2;
    (fits_with(middle) ? enough : too_little) = middle;
  }
}

// Of the parts of one policy those that do not fit tell nothing beside one that does, nor does a larger one, but for
// all.
void keep_least_part(std::vector<TriedRemedy>& parts) {
  std::stable_sort(parts.begin(), parts.end(), [](const TriedRemedy& a, const TriedRemedy& b) {
    return std::tuple(!a.change.fits, a.change.fits ? a.change.step_time.count() : a.change.missing) <
           std::tuple(!b.change.fits, b.change.fits ? b.change.step_time.count() : b.change.missing);
  });
  if (parts.size() > 1) parts.erase(parts.begin() + 1, parts.end());
}

// The best part of what a policy can do, and all of it.
std::vector<TriedRemedy> tried_parts(const Remedies& remedies, const std::string& policy,
                                     const std::function<Run(const Scenario&)>& run_changed) {
  std::vector<TriedRemedy> parts;
  try_parts([&](double part) {
    const std::optional<Remedy> remedy = remedies.part_of(policy, part);
    if (!remedy) return false;
    try {
      parts.push_back({tried(remedy->options, run_changed(remedy->scenario)), true});
    } catch (const UsageError&) {
      return false;
    }
    return parts.back().change.fits;
  });
  if (parts.empty()) return parts;
  const TriedRemedy whole = parts.front();
  keep_least_part(parts);
  if (parts.front().change.options != whole.change.options) parts.push_back(whole);
  return parts;
}

// A plan is searched for where there is one.
TriedRemedy tried_with_plans(const Remedy& remedy, const std::function<Run(const Scenario&)>& run_changed) {
  const Scenario any = with_any_plans(remedy.scenario);
  if (any == remedy.scenario) return {tried(remedy.options, run_changed(remedy.scenario)), remedy.same_gpu};
  TriedRemedy first{tried(remedy.options, run_changed(any)), remedy.same_gpu, remedy};
  if (!first.change.fits) return first;
  return {tried(remedy.options, run_changed(remedy.scenario)), remedy.same_gpu};
}

void put_best_first(std::vector<TriedRemedy>& all) {
  std::stable_sort(all.begin(), all.end(), [](const TriedRemedy& a, const TriedRemedy& b) {
    const auto rank = [](const TriedRemedy& r) {
      return std::tuple(!r.change.fits, r.change.fits && !r.same_gpu, r.change.fits ? 0 : r.change.missing,
                        r.change.step_time, r.change.peak_reserved);
    };
    return rank(a) < rank(b);
  });
}

}  // namespace

std::vector<TriedChange> try_remedies(const Run& refused, const Scenario& scenario,
                                      const std::function<Run(const Scenario&)>& run_changed) {
  // A plan is for the step as it is: with another policy there is none.
  if (!scenario.pager.empty() || !scenario.plan.empty() || !refused.trace->knowledge.allocations) return {};
  // A program of the user's would be asked again and again, for up to its time limit each time.
  if (std::any_of(scenario.policies.begin(), scenario.policies.end(),
                  [](const std::string& policy) { return parse_policy(policy).info->name == "exec"; }))
    return {};
  std::vector<TriedRemedy> all;
  const auto try_all = [&](const std::vector<Remedy>& remedies) {
    for (const Remedy& remedy : remedies) try {
        all.push_back(tried_with_plans(remedy, run_changed));
      } catch (const UsageError&) {  // it has nothing to move here
      }
  };
  const Remedies remedies(refused, scenario);
  try_all(remedies.single());
  for (const std::string& policy : remedies.divisible()) {
    if (remedies.plans_already()) {  // each run plans anew, many times over: no search for a part
      if (const std::optional<Remedy> whole = remedies.part_of(policy, 1)) try_all({*whole});
    } else {
      std::vector<TriedRemedy> parts = tried_parts(remedies, policy, run_changed);
      std::move(parts.begin(), parts.end(), std::back_inserter(all));
    }
  }
  if (!any_fits_here(all) && !remedies.plans_already()) try_all(remedies.together());
  put_best_first(all);
  const auto fitting = static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [](const TriedRemedy& r) { return r.change.fits; }));
  all.resize(std::min({all.size(), kMostRemedies, std::max(fitting, kNearest)}));
  for (TriedRemedy& one : all)
    if (one.unsearched) one.change = tried(one.change.options, run_changed(one.unsearched->scenario));
  put_best_first(all);
  std::vector<TriedChange> best;
  for (TriedRemedy& remedy : all) best.push_back(std::move(remedy.change));
  return best;
}

}  // namespace memwall
