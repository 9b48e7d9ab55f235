// Keeps, moves or computes again each gap between two uses, jointly, by the budget and what the links have time for.
// The algorithm and its bound are the project's own (policies/cycle); docs/planner.md explains both.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "policies/cycle/plan_certificate.h"
#include "policies/cycle/profile_cycle.h"
#include "policies/cycle/step_plan.h"
#include "policies/plan/executable_plan.h"
#include "policies/planners/planner.h"
#include "policies/planners/repair.h"
#include "policies/planners/unit_reruns.h"
#include "policies/profile/largest_op.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/trace/step_count.h"

namespace memwall {
namespace {

// Many small copies cost host time and leave the allocator with many pieces, neither of which the cycle counts. So
// storages below this part of what has to be away stay at first. Where that does not do, smaller ones move, too, or
// fewer.
constexpr Bytes kFinest = 256, kOtherFinest[] = {16384, 32};

// Of whole units of forward, what `checkpoint` gives up.
std::vector<RerunCandidate> in_units(const StepProfile& profile) {
  UnitReruns reruns;
  reruns.in_turn = false;  // what it does not take there, the plan moves or keeps
  reruns.units.policy = "plan";
  reruns.units.mode = "full";
  return candidates_of_plan(profile, plan_of_unit_reruns(profile, reruns));
}

StepPlanSettings settings_of(const PolicyArguments& arguments) {
  StepPlanSettings settings;
  settings.tiers = arguments.list("tiers");
  settings.recompute = arguments.flag("recompute");
  settings.robust = arguments.number("robust") / 100;
  settings.search = arguments.flag("search");
  settings.finest = kFinest;
  settings.keep_results = arguments.choice("executable") == "any";
  if (arguments.choice("reruns") == "units") {
    if (!settings.recompute)
      throw UsageError("Policy 'plan': reruns=units runs ops again, and recompute=0 forbids that; give one of them.");
    settings.candidates = in_units;
  }
  return settings;
}

// Others than the best are asked for: for which of them the allocator has a place is luck, and to try one takes a small
// part of the time of a search.
constexpr std::size_t kOthersOfSearch = 24, kOthersOfFirst = 2;
// A step as it is simulated may be shorter than its turn as it is planned by so much.
constexpr double kPlannedLonger = 1.01;

ProposedPlans proposed(StepPlanSettings settings, const StepProfile& profile, const Budget& budget) {
  settings.others = settings.search ? kOthersOfSearch : kOthersOfFirst;
  settings.roughly = budget.roughly;
  if (budget.worth < kNever) settings.worth_seconds = to_seconds(budget.worth) * kPlannedLonger;
  StepPlan found = plan_step(profile, budget.device, settings);
  ProposedPlans plans(std::move(found.plan), std::move(found.others));
  plans.planned = found.fits ? from_seconds(found.seconds) : Duration{};
  plans.work = found.work;
  plans.too_slow = found.too_slow;
  return plans;
}

Planner planner_with(const StepPlanSettings& settings) {
  return [settings](const StepProfile& profile, const Budget& budget, const Machine&, const Pricer&) {
    return proposed(settings, profile, budget);
  };
}

// Of each of the others.
constexpr int kTriesOfOther = 3, kInFullOfOther = 2;
// ProposedPlans::work of one unit of `effort`; and from which effort on there is no limit.
constexpr double kWorkOfEffort = 1e6, kMostEffort = 100;

// Where the host's memory has hardly more room than what has to be away: sizes are rounded up there.
constexpr double kScarce = 2;

// With the next tier behind the host's memory, where that is scarce.
Planner overflow_planner(StepPlanSettings settings) {
  settings.tiers.push_back("nvme");
  return [settings](const StepProfile& profile, const Budget& budget, const Machine& machine, const Pricer&) {
    const int host = machine.tier("host");
    const Bytes excess = cycle_of(profile).cycle.peak() - budget.device;
    const Bytes room = host < 0 ? 0 : machine.tiers[static_cast<std::size_t>(host)].holds();
    if (machine.tier("nvme") < 0 || static_cast<double>(room) > kScarce * static_cast<double>(excess))
      throw UsageError("The host's memory has room enough.");
    return proposed(settings, profile, budget);
  };
}

std::vector<OtherPlanner> others(const PolicyArguments& arguments) {
  const bool recompute = arguments.flag("recompute");
  std::vector<OtherPlanner> all;
  StepPlanSettings settings = settings_of(arguments);
  if (recompute && !settings.candidates) {
    StepPlanSettings units = settings;
    units.candidates = in_units, units.search = false;
    all.push_back({.planner = planner_with(units),
                   .name = "plan:reruns=units,search=0",
                   .tries = kTriesOfOther,
                   .is_quick = true,
                   .makes_room = true,
                   .beside = true});
  }
  for (const Bytes finest : kOtherFinest) {
    if (!settings.search) break;
    settings.finest = finest;
    all.push_back({.planner = planner_with(settings),
                   .tries = kTriesOfOther,
                   .in_full = kInFullOfOther,
                   .makes_room = true,
                   .beside = finest != kOtherFinest[0]});
  }
  if (recompute && settings.search) {
    settings.recompute = false;
    settings.candidates = {};
    all.push_back({.planner = planner_with(settings),
                   .name = "plan:recompute=0",
                   .tries = kTriesOfOther,
                   .kind = PlanKind::moves,
                   .in_full = kInFullOfOther,
                   .makes_room = true});
  }
  // What others plan uses the host's memory alone.
  const bool has_host = std::ranges::find(settings.tiers, "host") != settings.tiers.end();
  if (has_host && settings.tiers.size() == 1 && settings.search && arguments.choice("executable") == "any")
    all.push_back({.planner = overflow_planner(settings_of(arguments)),
                   .name = "plan:tiers=host+nvme",
                   .tries = kTriesOfOther,
                   .in_full = kInFullOfOther,
                   .makes_room = true,
                   .beside = recompute});
  // Without search the first that keeps to the budget is taken.
  const auto add = [&](const char* name, const std::string& asked, PlanKind kind) {
    all.push_back({.planner = planner_named(asked),
                   .name = name,
                   .tries = kTriesOfOther,
                   .kind = kind,
                   .makes_room = has_host,
                   .beside = settings.search,
                   .goes_first = settings.search && kind != PlanKind::moves});
  };
  if (has_host && recompute) add("capuchin", "capuchin", PlanKind::any);
  if (has_host && !recompute) add("capuchin", "capuchin:use=swaps", PlanKind::moves);
  if (has_host)
    for (const char* name : {"swapadvisor", "g10"}) add(name, name, PlanKind::moves);
  if (recompute)
    for (const char* name : {"rotor", "chen", "torch_sac", "torch_budget"}) add(name, name, PlanKind::reruns);
  return all;
}

LeastSteps least(const StepPlanSettings& settings, const StepProfile& profile, const Budget& budget) {
  const StepCycle& cycle = cycle_of(profile).cycle;
  const CycleLinks links = links_of_machine(profile.machine(), settings.tiers);
  const double moves = moves_bound(cycle, links, budget.device).seconds;
  if (!settings.recompute) return {from_seconds(moves), from_seconds(moves), kNever};
  const RerunPrices& prices = rerun_prices_of(profile);
  const double any = std::min(moves, joint_bound_seconds(cycle, links, budget.device, prices));
  const double reruns = reruns_bound_seconds(cycle, budget.device, prices);
  return {from_seconds(any), from_seconds(moves), from_seconds(reruns)};
}

std::string proof(const StepPlanSettings& settings, const StepProfile& profile, const Budget& budget) {
  if (const Bytes least = largest_op(profile).bytes; least > budget.device)
    return fmt::format("one op alone touches {}, no plan of whole storages keeps to less", human_bytes(least));
  const CycleLinks links = links_of_machine(profile.machine(), settings.tiers);
  const LeastTurn least = least_turn(profile, budget.device, links, settings.recompute);
  const auto steps = static_cast<double>(step_count(profile.trace()));
  return fmt::format("no plan {} is faster than {}, 1 GB more would be worth {} to the best",
                     settings.recompute ? "that moves and computes again in a row of steps"
                                        : "that only moves whole storages, alike in all of a row of steps,",
                     human_time(least.seconds / steps), human_time(least.per_gigabyte / steps));
}

const RegisterPlanner registered_plan{
    {.name = "plan",
     .sentence = "keeps, moves or computes again each gap between uses, jointly, near a proved bound",
     .parameters =
         {tiers("tiers", "host",
                "where storages may wait, the first preferred: host+nvme. host: where its memory is "
                "scarce, a plan with nvme is made, too."),
          flag("recompute", 1, "may ops be run again?"),
          choice("reruns", "any", {"any", "units"},
                 "units: whole units of forward are run again, as checkpoint does, all or the first ones; any: "
                 "what the bound favours."),
          choice("executable", "any", {"any", "torch"}, "torch: only what memwall_apply can carry out in PyTorch."),
          number("robust", 0, {0, 1000}, "%",
                 "20 or 20%: the plan is made as if every link were slower by that share."),
          flag("search", 1, "0: the first plan that keeps to the budget."),
          number("effort", kMostEffort, {0, kMostEffort}, "",
                 "of searches and other planners together, where a plan is known: a million candidates looked "
                 "at. 100: as many as they ask for."),
          flag("any", 0, "1: the first plan of any planner that keeps to the budget, however slow: is there one?")},
     .make = [](const PolicyArguments& arguments) -> Planner { return planner_with(settings_of(arguments)); },
     .sketch = [](const PolicyArguments& arguments) -> Planner {
       StepPlanSettings settings = settings_of(arguments);
       if (!settings.search) return {};
       settings.search = false;
       return planner_with(settings);
     },
     .others = others,
     // Without search others are asked only where nothing fits.
     .others_if_slower_by =
         [](const PolicyArguments& arguments) {
           return arguments.flag("search") ? 0.002 : std::numeric_limits<double>::infinity();
         },
     .takes_any = [](const PolicyArguments& arguments) { return arguments.flag("any"); },
     .most_work_of_others =
         [](const PolicyArguments& arguments) {
           const double effort = arguments.number("effort");
           return effort >= kMostEffort ? kAnyWork : static_cast<std::uint64_t>(effort * kWorkOfEffort);
         },
     .closing = [](const PolicyArguments& arguments) -> Planner {
       StepPlanSettings settings = settings_of(arguments);
       if (!settings.search || settings.candidates) return {};
       settings.whole_moves = true;
       return planner_with(settings);
     },
     .least = [](const PolicyArguments& arguments, const StepProfile& profile,
                 const Budget& budget) { return least(settings_of(arguments), profile, budget); },
     .restriction = [](const PolicyArguments& arguments) -> PlanRestriction {
       if (arguments.choice("executable") == "any") return {};
       return
           [](MemoryPlan plan, const Trace& trace) { return executable_plan(std::move(plan), trace, Dataflow(trace)); };
     },
     .makes_room = true,
     .proof = [](const PolicyArguments& arguments, const StepProfile& profile, const Budget& budget,
                 const MemoryPlan&) { return proof(settings_of(arguments), profile, budget); }}};

}  // namespace
}  // namespace memwall
