#include "policies/planners/unit_reruns.h"

#include <algorithm>
#include <utility>

#include "policies/recompute/recompute.h"
#include "policies/trace/passes_in_turn.h"
#include "policies/trace/parameter_casts.h"

namespace memwall {

std::vector<RecomputeUnit> every_nth(const std::vector<RecomputeUnit>& units, std::size_t n) {
  std::vector<RecomputeUnit> some;
  for (std::size_t i = n - 1; i < units.size(); i += n) some.push_back(units[i]);
  return some;
}

MemoryPlan plan_of_unit_reruns(const StepProfile& profile, const UnitReruns& reruns) {
  const Trace& t = profile.trace();
  const std::vector<Pass> all = reruns.in_turn ? passes_in_turn(t) : passes(t);
  refuse_idle_patterns(t, all, reruns.units);
  RecomputePlan plan;
  plan.kept_until.assign(t.storages.size(), 0);
  for (const Pass& pass : all) {
    std::vector<RecomputeUnit> units = eligible_units(t, profile.flow(), pass, reruns.units);
    if (reruns.taken) units = reruns.taken(pass, std::move(units));
    RecomputeRules rules;
    rules.early_stop = reruns.early_stop;
    rules.allow_collectives = reruns.communicates;
    rules.cast_ends = cast_ends(t, profile.flow(), pass);
    for (const RecomputeUnit& unit : units) {
      if (!reruns.kept_ops) break;
      const std::vector<OpId> kept = reruns.kept_ops(unit);
      rules.kept_results.insert(rules.kept_results.end(), kept.begin(), kept.end());
    }
    std::ranges::sort(rules.kept_results);
    plan_recompute(t, profile.flow(), pass, units, rules, plan);
  }
  return memory_plan_of(t, profile.flow(), plan);
}

}  // namespace memwall
