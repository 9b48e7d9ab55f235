#include <algorithm>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/added_rendezvous.h"
#include "sim/policy/registry.h"
#include "sim/policy/tensor_replicas.h"
#include "sim/trace/ranks.h"
#include "sim/trace/rendezvous.h"
#include "sim/trace/trace_check.h"

namespace memwall {
namespace {

using ChosenRewriter = std::pair<std::unique_ptr<Rewriter>, const PolicySpec*>;
using ChosenRewriters = std::vector<ChosenRewriter>;

// The policies that make memory plans.
std::string planning_policies() {
  std::vector<std::string> names;
  for (const auto& [name, info] : policies())
    if (info.kind == PolicyKind::memory_plan) names.push_back(name);
  return listed(names);
}

// `first_free` 0: the trace meets nobody.
Trace rewritten_by(const ChosenRewriter& one, const Trace& before, const Machine& machine, const Pricer& pricer,
                   std::uint64_t first_free) {
  const auto& [rewriter, spec] = one;
  require_knowledge(*spec, before, rewriter->needs());
  Trace trace = rewriter->rewrite(before, machine, pricer);
  if (first_free > 0 && !separate_rendezvous(trace, first_free))
    throw UsageError("Policy '" + spec->text +
                     "' repeats collectives of several ranks more often than can be numbered.");
  require_made_sound(trace, "policy '" + spec->text + "'");
  return trace;
}

// One program by all of them. REQUIRES: rewriters are not empty.
Trace rewritten(const Trace& before, std::span<const ChosenRewriter> rewriters, const Machine& machine,
                const Pricer& pricer, std::uint64_t first_free) {
  Trace trace = rewritten_by(rewriters.front(), before, machine, pricer, first_free);
  for (const ChosenRewriter& one : rewriters.subspan(1)) trace = rewritten_by(one, trace, machine, pricer, first_free);
  return trace;
}

// Each rank's program alone; what joins them are the collectives that stay in place.
Trace rewritten_by_rank(const Trace& trace, std::span<const ChosenRewriter> rewriters, const Machine& machine,
                        const Pricer& pricer) {
  for (const auto& [rewriter, spec] : rewriters)
    if (spec->info->ranks == RankRule::one_program)
      throw UsageError("Policy '" + spec->text + "' rewrites one program that all ranks run; trace '" + trace.name +
                       "' holds " + std::to_string(rank_count(trace)) +
                       " ranks with programs of their own. Expected a trace of one rank.");
  for (const auto& [rewriter, spec] : rewriters)
    if (const std::string obstacle = rank_obstacle(*spec->info, trace); !obstacle.empty())
      throw UsageError("Policy '" + spec->text + "' " + obstacle + ", which the " + std::to_string(rank_count(trace)) +
                       " of trace '" + trace.name +
                       "' are. Expected one stage; of a generated job, its own settings (batch, accumulation, "
                       "data_parallel, distributed_optimizer).");
  const std::uint64_t first_free = first_free_rendezvous(trace);
  // Of several programs each has a plan of its own, and all of them one key.
  for (const auto& [rewriter, spec] : rewriters) rewriter->remember_plans_in({}, "");
  std::vector<RankProgram> ranks;
  std::string meeting;  // the policy whose collectives meet
  for (const auto& [rewriter, spec] : rewriters)
    if (spec->info->ranks == RankRule::each_meeting) meeting = spec->text;
  for (std::uint16_t r = 0; r < rank_count(trace); ++r)
    ranks.push_back({trace.rank_table[r].number, rewritten(one_rank(trace, r), rewriters, machine, pricer, first_free),
                     trace.rank_table[r].stands_for, trace.rank_table[r].chunks});
  if (!meeting.empty()) join_added_collectives(ranks, meeting);
  Trace joined = joined_ranks(std::move(ranks));
  require_made_sound(joined, "joining the rewritten ranks");
  return joined;
}

// What makes several programs of one (a pipeline) hands them to those behind it one by one.
Trace rewritten_by_all(const Trace& trace, std::span<const ChosenRewriter> rewriters, const Machine& machine,
                       const Pricer& pricer) {
  if (rank_count(trace) > 1) return rewritten_by_rank(trace, rewriters, machine, pricer);
  Trace made = rewritten_by(rewriters.front(), trace, machine, pricer, 0);
  if (rewriters.size() == 1) return made;
  return rewritten_by_all(made, rewriters.subspan(1), machine, pricer);
}

// In the order in which they are applied.
ChosenRewriters chosen_of(const std::vector<PolicySpec>& specs, const PlanRestriction& restriction,
                          const PlanAllocator& allocator) {
  ChosenRewriters rewriters;
  std::set<std::string> seen;
  for (const PolicySpec& spec : specs) {
    const PolicyInfo& info = *spec.info;
    if (!info.make_rewriter) throw UsageError("'" + info.name + "' is a pager: give it with --pager, not --policy.");
    const std::string kind(to_string(info.kind));
    std::unique_ptr<Rewriter> rewriter = info.make_rewriter(spec.arguments);
    rewriter->restrict_plans(restriction);
    rewriter->simulate_plans_with(allocator);
    const std::string place = kind + " " + std::to_string(rewriter->precedence());
    const auto earlier = std::ranges::find_if(
        rewriters, [&](const auto& chosen) { return chosen.second->info == &info && !info.may_repeat; });
    if (earlier != rewriters.end())
      throw UsageError("Policy '" + spec.text + "' comes behind '" + earlier->second->text + "': '" + info.name +
                       "' is given twice. Expected it once.");
    if (!seen.insert(info.may_repeat ? spec.text : place).second)
      throw UsageError("Policy '" + spec.text + "' and an earlier one are both of the kind '" + kind +
                       "'; their combination has no defined meaning.");
    rewriters.emplace_back(std::move(rewriter), &spec);
  }
  std::stable_sort(rewriters.begin(), rewriters.end(), [](const auto& a, const auto& b) {
    const PolicySpec &one = *a.second, &other = *b.second;
    const auto place = [](const PolicySpec& spec, const Rewriter& rewriter) {
      return std::tuple(spec.info->kind, rewriter.precedence(), std::string_view(spec.text));
    };
    return place(one, *a.first) < place(other, *b.first);  // the order of flags decides nothing
  });
  return rewriters;
}

// `planner`: which of them makes the plan; else their number.
void name_policies(const ChosenRewriters& rewriters, std::size_t planner, PlannedStep& step) {
  const char* before = " behind ";
  for (std::size_t i = 0; i < rewriters.size(); ++i) {
    if (i == planner) continue;
    step.made_by += before + rewriters[i].second->text;
    before = ", ";
    step.policies.push_back(applied_policy(*rewriters[i].second));
  }
  if (planner < rewriters.size()) step.policies.push_back(applied_policy(*rewriters[planner].second));
}

// What a policy's plan follows from, beside the step: those applied before it, and itself.
void remember_plan(const ChosenRewriter& one, const PlanCache& cache, std::string& applied) {
  const auto& [rewriter, spec] = one;
  applied += spec->text + '\n';
  rewriter->remember_plans_in(cache, applied);
}

// Applies a policy that stands before the plan, and keeps what it decides.
void put_before(const ChosenRewriter& one, const Machine& machine, const Pricer& pricer, PlannedStep& step) {
  const auto& [rewriter, spec] = one;
  require_knowledge(*spec, step.trace, rewriter->needs());
  if (spec->info->kind == PolicyKind::memory_plan)
    if (std::optional<MemoryPlan> plan = rewriter->memory_plan(step.trace, machine, pricer))
      step.earlier.push_back({step.trace, *std::move(plan)});
  if (auto optimizer = rewriter->named_optimizer(machine)) step.optimizer = std::move(optimizer);
  step.trace = rewritten_by(one, step.trace, machine, pricer, 0);
}

void require_one_program(const Trace& trace) {
  if (rank_count(trace) == 1) return;
  throw UsageError("Trace '" + trace.name + "' holds programs of " + std::to_string(rank_count(trace)) +
                   " ranks; a memory plan is for one. A policy that makes plans (" + planning_policies() +
                   ") plans each rank by itself where the step is run with it.");
}

// Nothing where that rewriter makes no plan. The others are applied before: what comes after it (the optimizer's states
// on the host, behind a plan for activations) concerns other storages.
std::optional<PlannedStep> planned_by(const Trace& trace, const ChosenRewriters& rewriters, std::size_t planner,
                                      const Machine& machine, const Pricer& pricer, const PlanCache& cache) {
  const auto& [rewriter, spec] = rewriters[planner];
  if (spec->info->kind != PolicyKind::memory_plan) return std::nullopt;
  PlannedStep step{trace, {}, spec->text};
  std::string applied;
  for (std::size_t i = 0; i < rewriters.size(); ++i) {
    if (i == planner) continue;
    remember_plan(rewriters[i], cache, applied);
    put_before(rewriters[i], machine, pricer, step);
  }
  remember_plan(rewriters[planner], cache, applied);
  require_one_program(step.trace);
  require_knowledge(*spec, step.trace, rewriter->needs());
  std::optional<MemoryPlan> plan = rewriter->memory_plan(step.trace, machine, pricer);
  if (!plan) return std::nullopt;
  step.plan = *std::move(plan);
  if (auto optimizer = rewriter->named_optimizer(machine)) step.optimizer = std::move(optimizer);
  name_policies(rewriters, planner, step);
  return step;
}

}  // namespace

std::string rank_obstacle(const PolicyInfo& info, const Trace& trace) {
  if (info.ranks == RankRule::each_alone || rank_count(trace) == 1) return "";
  if (info.ranks == RankRule::one_program) return "needs a trace of one rank";
  return hold_the_same_parameters(trace) ? "" : "needs ranks that hold the same parameters, not stages of a pipeline";
}

Trace apply_rewriters(const Trace& trace, const std::vector<PolicySpec>& specs, const Machine& machine,
                      const Pricer& pricer, const PlanRestriction& restriction, const PlanAllocator& allocator,
                      const PlanCache& cache) {
  const ChosenRewriters rewriters = chosen_of(specs, restriction, allocator);
  if (rewriters.empty()) return trace;
  std::string applied;
  for (const ChosenRewriter& one : rewriters) remember_plan(one, cache, applied);
  if (rank_count(trace) > 1) return rewritten_by_rank(trace, rewriters, machine, pricer);
  Trace made = with_tensor_replicas(rewritten_by_all(trace, rewriters, machine, pricer), trace, pricer);
  require_made_sound(made, "counting the ranks that share layers");
  return made;
}

PlannedStep plan_rewriters(const Trace& trace, const std::vector<PolicySpec>& specs, const Machine& machine,
                           const Pricer& pricer, const PlanRestriction& restriction, const PlanAllocator& allocator,
                           const PlanCache& cache) {
  const ChosenRewriters rewriters = chosen_of(specs, restriction, allocator);
  if (rewriters.empty())
    throw UsageError("A memory plan is made by a policy; expected one of them: " + planning_policies() + ".");
  require_one_program(trace);
  for (std::size_t i = rewriters.size(); i-- > 0;)
    if (std::optional<PlannedStep> step = planned_by(trace, rewriters, i, machine, pricer, cache))
      return *std::move(step);
  PlannedStep step{trace, {}, "no plan"};
  for (const ChosenRewriter& one : rewriters) put_before(one, machine, pricer, step);
  name_policies(rewriters, rewriters.size(), step);
  return step;
}

}  // namespace memwall
