#include "policies/recompute/recompute_plan.h"

#include "policies/recompute/unit_planner.h"

namespace memwall {

void plan_recompute(const Trace& trace, const Dataflow& flow, const Pass& pass, const std::vector<RecomputeUnit>& units,
                    const RecomputeRules& rules, RecomputePlan& plan) {
  // Later units first: what their re-run starts from, an earlier unit must not drop.
  const std::size_t first = plan.units.size();
  plan.units.resize(first + units.size());
  const ParameterGathers gathers(trace, flow);
  const SavedStorages saved(trace, flow);
  for (std::size_t i = units.size(); i-- > 0;)
    plan.units[first + i] = UnitPlanner(trace, flow, pass, units[i], rules, gathers, saved, plan.kept_until).run();
}

}  // namespace memwall
