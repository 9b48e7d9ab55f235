#include "policies/recompute/recompute_rewriter.h"

#include <algorithm>

#include "policies/plan/plan_writer.h"
#include "policies/profile/hidden_units.h"
#include "policies/recompute/recompute.h"
#include "policies/recompute/recompute_notes.h"
#include "policies/recompute/saved_operators.h"
#include "policies/trace/parameter_casts.h"
#include "policies/trace/passes_in_turn.h"
#include "sim/error.h"

namespace memwall {

std::string refusal_without_passes(const std::string& policy, const Trace& trace) {
  if (!passes(trace).empty()) return "";
  return "Policy '" + policy + "' has no meaning for trace '" + trace.name +
         "': no backward follows a forward in it, so nothing is kept for one.";
}

Trace RecomputeRewriter::rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const {
  const std::vector<Pass> all = passes_in_turn(trace);
  const Dataflow flow(trace);
  const Decision decision = decide(trace, machine, pricer, flow, all);
  TraceEdit edit(trace, machine.host);
  const RestrictedPlan plan = restricted_plan(trace, flow, decision.plan);
  write_plan(plan.plan, flow, pricer, edit);
  Trace result = std::move(edit).apply();
  if (!plan.note.empty()) result.notes.push_back(s_.units.policy + ": " + plan.note);
  if (!decision.hidden.empty()) result.notes.push_back(s_.units.policy + ": " + decision.hidden + ".");
  if (decision.plan.units.empty()) return result;
  for (std::string& note : recompute_notes(s_.units, s_.rules, trace, decision.plan, all.size()))
    result.notes.push_back(std::move(note));
  return result;
}

std::optional<MemoryPlan> RecomputeRewriter::memory_plan(const Trace& trace, const Machine& machine,
                                                         const Pricer& pricer) const {
  const Dataflow flow(trace);
  return restricted_plan(trace, flow, decide(trace, machine, pricer, flow, passes_in_turn(trace)).plan).plan;
}

RestrictedPlan RecomputeRewriter::restricted_plan(const Trace& trace, const Dataflow& flow,
                                                  const RecomputePlan& plan) const {
  return restricted(restriction(), memory_plan_of(trace, flow, plan), trace, "Policy '" + s_.units.policy + "'");
}

RecomputeRewriter::Decision RecomputeRewriter::decide(const Trace& trace, const Machine& machine, const Pricer& pricer,
                                                      const Dataflow& flow, const std::vector<Pass>& all) const {
  if (const std::string refusal = refusal_without_passes(s_.units.policy, trace); !refusal.empty())
    throw UsageError(refusal);
  refuse_idle_patterns(trace, all, s_.units);
  refuse_idle_words(trace, all);
  Decision decision{plan_with(trace, flow, all, std::nullopt)};
  refuse_if_nothing_is_left(trace, decision.plan);
  if (!s_.units.hides) return decision;
  std::size_t most = 0;
  for (const Pass& pass : all) most = std::max(most, eligible_units(trace, flow, pass, s_.units).size());
  const StepProfile profile(trace, machine);
  const HiddenUnits hidden = hidden_units(profile, pricer, most, [&](std::size_t units) {
    return memory_plan_of(trace, flow, plan_with(trace, flow, all, units));
  });
  decision.plan = plan_with(trace, flow, all, hidden.units);
  decision.hidden = hidden.sentence("unit", "units") + (all.size() > 1 ? "; units are those of one forward" : "");
  return decision;
}

RecomputePlan RecomputeRewriter::plan_with(const Trace& trace, const Dataflow& flow, const std::vector<Pass>& all,
                                           std::optional<std::size_t> units) const {
  RecomputePlan plan;
  plan.kept_until.assign(trace.storages.size(), 0);
  for (const Pass& pass : all) {
    RecomputeRules rules = s_.rules;
    rules.kept_results = kept_results(trace, pass);
    rules.cast_ends = cast_ends(trace, flow, pass);
    std::vector<RecomputeUnit> eligible = eligible_units(trace, flow, pass, s_.units);
    const std::size_t taken = units ? *units : chosen_number(trace, eligible.size(), s_.units);
    plan_recompute(trace, flow, pass, taken_units(std::move(eligible), taken, s_.units), rules, plan);
  }
  return plan;
}

// A network need not have every family of operators ("mm+sdpa"), but something must be kept.
void RecomputeRewriter::refuse_idle_words(const Trace& trace, const std::vector<Pass>& all) const {
  if (s_.save.empty()) return;
  std::vector<std::string> names;
  for (const std::string& word : s_.save)
    if (!is_family(word)) names.push_back(word);
  refuse_idle_operators(trace, all, s_.units.policy, "save", names);
  if (std::all_of(all.begin(), all.end(), [&](const Pass& pass) { return kept_results(trace, pass).empty(); }))
    refuse_idle_operators(trace, all, s_.units.policy, "save", s_.save);
}

std::vector<OpId> RecomputeRewriter::kept_results(const Trace& trace, const Pass& pass) const {
  std::vector<OpId> kept;
  if (s_.save.empty()) return kept;
  for (const RecomputeUnit& run : operator_units(trace, pass, patterns_of(s_.save)))
    kept.insert(kept.end(), run.ops.begin(), run.ops.end());
  return kept;
}

void RecomputeRewriter::refuse_if_nothing_is_left(const Trace& trace, const RecomputePlan& plan) const {
  const std::string begin = "Policy '" + s_.units.policy + "' (mode=" + s_.units.mode + ") ";
  if (plan.units.empty())
    throw UsageError(begin + "finds no unit in the forward of trace '" + trace.name +
                     "' that holds anything for backward.");
  const bool refused =
      std::all_of(plan.units.begin(), plan.units.end(), [](const UnitPlan& u) { return !u.refusal.empty(); });
  if (refused)
    throw UsageError(begin + "can re-run none of " + std::to_string(plan.units.size()) + " units; the first is " +
                     plan.units.front().name + ": " + plan.units.front().refusal + ".");
}

}  // namespace memwall
