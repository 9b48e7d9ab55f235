#include "policies/planners/kept_units.h"

#include <fmt/format.h>

#include <algorithm>

#include "policies/planners/forward_chain.h"
#include "policies/recompute/recompute_notes.h"
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

std::string rerun_units(const StepProfile& profile, const MemoryPlan& plan) {
  const Trace& t = profile.trace();
  const auto is_kernel = [&](OpId id) { return t.ops[id].kind == OpKind::kernel; };
  const auto is_native = [&](OpId id) { return is_kernel(id) && t.ops[id].dispatch != Dispatch::compiled; };
  const auto compiled = static_cast<std::size_t>(std::ranges::count_if(plan.reruns, [&](const PlannedRerun& rerun) {
    return std::ranges::any_of(rerun.ops, is_kernel) && std::ranges::none_of(rerun.ops, is_native);
  }));
  return compiled > 0 ? compiled_units(compiled) : kept_units(profile, plan);
}

}  // namespace memwall
