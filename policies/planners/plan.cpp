// Keeps, moves or computes again each gap between two uses, jointly, by the budget and what the links have time for.
// The algorithm and its bound are the project's own (policies/cycle); docs/planning.md explains both.
#include <fmt/format.h>

#include "policies/cycle/plan_certificate.h"
#include "policies/cycle/step_plan.h"
#include "policies/plan/executable_plan.h"
#include "policies/planners/planner.h"
#include "policies/profile/plan_estimate.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

StepPlanSettings settings_of(const PolicyArguments& arguments) {
  StepPlanSettings settings;
  settings.tiers = arguments.list("tiers");
  settings.recompute = arguments.flag("recompute");
  settings.robust = arguments.number("robust") / 100;
  settings.search = arguments.flag("search");
  return settings;
}

// Where many small storages move, the host issues many copies, which the cycle does not count: a plan of few large moves
// is simulated beside the first.
constexpr Bytes kFewMoves = 32;
constexpr std::size_t kMostOpsSimulated = 50'000;

MemoryPlan planned(const StepProfile& profile, const Budget& budget, const Machine& machine, const Pricer& pricer,
                   StepPlanSettings settings) {
  StepPlan fine = plan_step(profile, budget.device, machine, settings);
  if (!settings.search || profile.trace().ops.size() > kMostOpsSimulated || fine.moves == 0) return fine.plan;
  settings.finest = kFewMoves;
  StepPlan coarse = plan_step(profile, budget.device, machine, settings);
  if (!fine.fits || !coarse.fits) return fine.fits ? fine.plan : coarse.plan;
  const Duration with_fine = simulate_plan(profile, fine.plan, pricer).result.end;
  return simulate_plan(profile, coarse.plan, pricer).result.end < with_fine ? coarse.plan : fine.plan;
}

std::string proof(const StepPlanSettings& settings, const StepProfile& profile, const Budget& budget) {
  const PlanCertificate c =
      plan_certificate(profile, budget.device, links_of_machine(profile.machine(), settings.tiers));
  if (c.least_budget > budget.device)
    return fmt::format("one op alone touches {}, no plan of whole storages keeps to less", human_bytes(c.least_budget));
  const double least = settings.recompute ? c.joint_seconds : c.moves_seconds;
  return fmt::format("no plan {} in a row of steps is faster than {}, 1 GB more would be worth {} to the best",
                     settings.recompute ? "that moves and computes again" : "that only moves", human_time(least),
                     human_time(settings.recompute ? c.joint_per_gigabyte : c.moves_per_gigabyte));
}

const RegisterPlanner registered_plan{
    {.name = "plan",
     .sentence = "keeps, moves or computes again each gap between uses, jointly, near a proved bound",
     .parameters = {tiers("tiers", "host", "where storages may wait, the first preferred: host+nvme."),
                    flag("recompute", 1, "may ops be run again?"),
                    choice("executable", "any", {"any", "torch"},
                           "torch: only what memwall_apply can carry out in PyTorch."),
                    number("robust", 0, {0, 1000}, "%", "by so much slower the links are taken to be."),
                    flag("search", 1, "0: the first plan that keeps to the budget, in a few milliseconds.")},
     .make = [](const PolicyArguments& arguments) -> Planner {
       const StepPlanSettings settings = settings_of(arguments);
       const bool torch = arguments.choice("executable") == "torch";
       return [settings, torch](const StepProfile& profile, const Budget& budget, const Machine& machine,
                                const Pricer& pricer) {
         MemoryPlan plan = planned(profile, budget, machine, pricer, settings);
         if (!torch) return plan;
         return executable_plan(std::move(plan), profile.trace(), profile.flow()).plan;
       };
     },
     // What it may fall short of is the host's calls and the allocator's pieces, which the cycle does not count.
     .fallback =
         [](const PolicyArguments& arguments) -> Planner {
       return arguments.flag("recompute") ? planner_named("capuchin") : planner_named("capuchin:use=swaps");
     },
     .fallback_name = "capuchin",
     .proof = [](const PolicyArguments& arguments, const StepProfile& profile, const Budget& budget,
                 const MemoryPlan&) { return proof(settings_of(arguments), profile, budget); }}};

}  // namespace
}  // namespace memwall
