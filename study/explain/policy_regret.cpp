#include "study/explain/policy_regret.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/error.h"
#include "sim/machine/device_memory.h"
#include "sim/policy/registry.h"
#include "study/budget_bound.h"
#include "study/text_parts.h"

namespace memwall {
namespace {

const char* const kOffload = "offload:what=activations";
const char* const kPlan = "plan";
const char* const kBudget = "budget=";

bool is_plan(const std::string& policy) { return parse_policy(policy).info->kind == PolicyKind::memory_plan; }

// "plan:budget=24GiB,tiers=host" without its budget, which goes to `budget`.
std::string without_budget(const std::string& policy, std::string& budget) {
  const std::size_t colon = policy.find(':');
  if (colon == std::string::npos) return policy;
  std::string kept;
  for (const std::string& setting : parts_of(policy.substr(colon + 1), ','))
    if (setting.starts_with(kBudget))
      budget = setting.substr(std::string_view(kBudget).size());
    else
      kept += (kept.empty() ? "" : ",") + setting;
  return kept.empty() ? policy.substr(0, colon) : policy.substr(0, colon) + ":" + kept;
}

// Of the step's storages, on the machine of the run.
Bytes budget_of(const Run& run, const std::string& of_policy) {
  for (const MemoryBudget& budget : run.trace->budgets)
    if (!of_policy.empty()) return budget.bytes;
  return device_bytes_for(*run.trace, run.machine.one);
}

// Of those compared, the one that this is in other words ("offload:activations"); else itself.
std::string known_as(const std::string& plan, const std::vector<std::string>& compared) {
  const AppliedPolicy own = applied_policy(parse_policy(plan));
  for (const std::string& other : compared)
    if (applied_policy(parse_policy(other)) == own) return other;
  return plan;
}

PolicyRegret none(std::string why) { return {.why_none = std::move(why)}; }

}  // namespace

Scenario without_plans(Scenario scenario, std::vector<std::string>& plans, std::string& budget) {
  std::vector<std::string> beneath;
  for (const std::string& policy : scenario.policies) {
    if (!is_plan(policy)) {
      beneath.push_back(policy);
      continue;
    }
    std::string own;
    plans.push_back(without_budget(policy, own));
    if (budget.empty()) budget = own;
  }
  scenario.policies = std::move(beneath);
  return scenario;
}

double PolicyRegret::regret(std::size_t policy) const {
  const auto best = static_cast<std::size_t>(comparison.fastest(0));
  return to_seconds(comparison.cell(0, policy).step_time - comparison.cell(0, best).step_time);
}

PolicyRegret policy_regret(ScenarioPoints& points, const Scenario& scenario, const Run& run, double share,
                           Watch* watch) {
  if (!scenario.plan.empty())
    return none("Regrets are not computed for a plan from a file (--plan); expected policies.");
  if (!scenario.pager.empty())
    return none("Regrets are not computed beside a pager, which decides while the step runs.");
  if (!scenario.executable.empty())
    return none("Regrets are not computed for executable plans alone; memwall compare-policies has more.");
  std::vector<std::string> plans;
  std::string budget;
  PolicyQuestion question{.scenario = without_plans(scenario, plans, budget), .jobs = points.jobs()};
  PolicyRegret regret;
  regret.is_given = !scenario.budget.empty() || !budget.empty();
  try {
    const Bytes bytes = budget_of(run, budget);
    question.scenario.budget.clear();
    question.budgets = {fmt::format("{}B", bytes)};
    question.policies = {kOffload, kPlan};
    if (plans.empty()) regret.own = kNoPolicy;
    if (plans.size() == 1) {
      regret.own = known_as(plans.front(), {"checkpoint:mode=full", kOffload, kPlan});
      question.policies.push_back(regret.own);
    }
    regret.comparison = compare_policies(points.study(), question, watch);
    const BudgetBounds& bounds = regret.comparison.bounds;
    if (!bounds.why_none.empty()) return regret;
    const Run unlimited = points.study().run(question.scenario, {.record = false}).run;
    const auto lower = static_cast<Bytes>(static_cast<double>(bytes) * (1 - share));
    const BudgetBounds slope = budget_bounds(unlimited, bounds.tiers, {bytes, lower});
    if (slope.at.size() == 2 && slope.at[0].is_possible && slope.at[1].is_possible)
      regret.bound_seconds_per_byte =
          to_seconds(slope.at[1].step_time - slope.at[0].step_time) / static_cast<double>(bytes - lower);
  } catch (const UsageError& error) {
    return none(error.what());
  } catch (const InfeasibleError& error) {
    return none(error.what());
  }
  return regret;
}

}  // namespace memwall
