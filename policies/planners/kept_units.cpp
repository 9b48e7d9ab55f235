#include "policies/planners/kept_units.h"

#include <fmt/format.h>

#include "policies/planners/forward_chain.h"
#include "policies/recompute/recompute_plan.h"
#include "sim/human_text.h"

namespace memwall {

std::string kept_units(const StepProfile& profile, const MemoryPlan& plan) {
  if (!plan.reruns.empty()) return "";
  RecomputePlan each;
  each.kept_until.assign(profile.trace().storages.size(), 0);
  for (const ForwardChain& chain : forward_chains_of(profile))
    plan_recompute(profile.trace(), profile.flow(), chain.pass, chain.units, {}, each);
  std::size_t refused = 0;
  std::string first;
  for (const UnitPlan& unit : each.units) {
    if (unit.refusal.empty()) continue;
    if (refused++ == 0) first = unit.name + ": " + unit.refusal;
  }
  if (refused == 0) return "";
  first = first.substr(0, first.find(" (allow_collectives"));  // a parameter of checkpoint alone
  return fmt::format("{} of {} {} kept; {}.", refused, counted_text(each.units.size(), "unit"),
                     by_number(refused, "is", "are"), first);
}

}  // namespace memwall
