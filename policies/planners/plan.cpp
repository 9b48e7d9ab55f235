// Keeps, moves or computes again each gap between two uses, jointly, by the budget and what the links have time for.
// The algorithm and its bound are the project's own (policies/cycle); docs/planning.md explains both.
#include "policies/cycle/step_plan.h"
#include "policies/plan/executable_plan.h"
#include "policies/planners/planner.h"
#include "policies/profile/plan_estimate.h"

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
     }}};

}  // namespace
}  // namespace memwall
