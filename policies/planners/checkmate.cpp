// What to keep and what to compute again, as the exact answer of an integer program.
//
// Jain, Jain, Nrusimha, Gholami, Abbeel, Keutzer, Stoica, Gonzalez 2020, "Checkmate: Breaking the Memory Wall with
// Optimal Tensor Rematerialization" (MLSys 2020); as described in public texts, details from memory of the paper; not
// checked against its code. checkmate_program.h is the program, stage_schedule.h makes a plan of its answer.
//   exact     the program with whole numbers, by CBC (policies/solver), started from what rounding or rotor finds
//   rounding  its linear relaxation, rounded, and re-runs made to fit (the paper's two-phase rounding)
// The relaxation's objective is a proved bound: no schedule of these units takes less, with bytes counted as here.
// Deviations: nodes are units of forward (forward_chains_of, as rotor_stages.h sizes them), joined to at most nodes= of
// them, not operators, so that a finer schedule may be faster; what a unit keeps for its own backward and what it hands
// on are kept or dropped apart; nothing of backward runs again. Of the same units in the same count of bytes it takes
// the time of rotor's schedule at most, since that is one of those that it chooses among and starts from. The search is
// limited by its nodes, which gives the same plan each time, and by time_limit=, which need not. Where memory suffices
// for no schedule, the least over it is sought. Left out: the random thresholds of the paper's rounding.
#include <fmt/format.h>

#include <algorithm>

#include "policies/planners/checkmate_program.h"
#include "policies/planners/kept_units.h"
#include "policies/planners/planner.h"
#include "policies/planners/rotor_stages.h"
#include "policies/planners/stage_schedule.h"
#include "policies/profile/planned_memory.h"
#include "sim/error.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

struct CheckmateSettings {
  std::size_t nodes = 0;
  bool exact = true;
  SolverLimits limits;
};

// A forward pass with its program's input.
struct CheckmatePass {
  RotorPass pass;
  CheckmateChain chain;
  Bytes limit = 0;
  OpId backward = kNoOp;
};

// Does backward of the unit, or what follows it, read of its output?
bool reads_own_output(const Dataflow& flow, const RotorUnit& unit) {
  return std::ranges::any_of(unit.output, [&](StorageId s) {
    return std::ranges::binary_search(unit.saved, s) && flow.touches(s).back().op >= unit.backward;
  });
}

std::vector<CheckmatePass> checkmate_passes(const StepProfile& p, const ParameterGathers& gathers, Bytes budget,
                                            std::size_t nodes) {
  std::vector<CheckmatePass> all;
  for (const ForwardChain& chain : forward_chains_of(p)) {
    RotorPass pass = rotor_pass(p, gathers, chain, nodes);
    if (pass.units.empty()) continue;
    CheckmateChain units{pass.chain, {}, {}};
    for (const RotorUnit& unit : pass.units) {
      units.is_repeatable.push_back(unit.is_repeatable);
      units.reads_own_output.push_back(reads_own_output(p.flow(), unit));
    }
    const Bytes limit = std::max<Bytes>(1, std::max(budget, pass.most_beside) - pass.beside);
    all.push_back({std::move(pass), std::move(units), limit, chain.pass.backward});
  }
  return all;
}

bool is_alike(const CheckmatePass& a, const CheckmatePass& b) { return a.limit == b.limit && a.chain == b.chain; }

void require_solver() {
  if (!LinearProgram::is_available())
    throw UsageError(std::string("Policy 'checkmate' needs ") + LinearProgram::missing() + ".");
}

MemoryPlan checkmate_plan(const StepProfile& p, Bytes budget, const CheckmateSettings& settings) {
  require_solver();
  MemoryPlan plan;
  if (PlannedMemory(p).peak() <= budget) return plan;
  const ParameterGathers& gathers = p.gathers();
  const std::vector<CheckmatePass> all = checkmate_passes(p, gathers, budget, settings.nodes);
  std::vector<CheckmateSchedule> schedules;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0 && is_alike(all[i], all[i - 1])) {  // steps of one program
      schedules.push_back(schedules.back());
    } else {
      const CheckmateProgram program(all[i].chain, all[i].limit);
      schedules.push_back(settings.exact ? program.exact(settings.limits) : program.rounded());
    }
    add_schedule(p, gathers, all[i].pass, all[i].backward, schedules.back().steps, plan);
  }
  return plan;
}

// What was proved for the budget as it was given, beside what the plan takes.
std::string proved(const StepProfile& p, Bytes budget, std::size_t nodes, const MemoryPlan& plan) {
  const ParameterGathers& gathers = p.gathers();
  const std::vector<CheckmatePass> all = checkmate_passes(p, gathers, budget, nodes);
  Duration least{}, taken{}, last{};
  std::size_t units = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    units = std::max(units, all[i].pass.units.size());
    if (i == 0 || !is_alike(all[i], all[i - 1])) {
      const std::optional<Duration> bound = CheckmateProgram(all[i].chain, all[i].limit).bound();
      if (!bound)
        return fmt::format("no schedule of these {} keeps to the budget, as the linear relaxation proves.",
                           counted_text(units, "unit"));
      last = *bound;
    }
    least += last;
  }
  if (units == 0) return "";
  for (const PlannedRerun& rerun : plan.reruns)
    for (const OpId id : rerun.ops)
      if (runs_on_device(p.trace().ops[id].kind)) taken += p.trace().ops[id].duration;
  return fmt::format(
      "no schedule of these {} runs less than {} again within the budget, as the linear relaxation proves for bytes "
      "without the allocator's pieces; this plan runs {} again.",
      counted_text(units, "unit"), human_time(least), human_time(taken));
}

const RegisterPlanner registered_checkmate{
    {.name = "checkmate",
     .sentence = "keeps, or computes again, what an integer program finds best within a budget (Jain et al. 2020)",
     .parameters = {choice("mode", "exact", {"exact", "rounding"},
                           "exact: with whole numbers; rounding: the linear relaxation, rounded."),
                    integer("nodes", 32, {2, 64}, "units", "of forward at most; of more neighbours are joined."),
                    integer("search_nodes", 100, {0, 1'000'000}, "nodes", "of the search for whole numbers, at most."),
                    number("time_limit", 10, {0.1, 3600}, "seconds", "of the search, at most.")},
     .make = [](const PolicyArguments& arguments) -> Planner {
       const CheckmateSettings settings{static_cast<std::size_t>(arguments.integer("nodes")),
                                        arguments.choice("mode") == "exact",
                                        {arguments.number("time_limit"), arguments.integer("search_nodes")}};
       return [settings](const StepProfile& profile, const Budget& budget, const Machine&, const Pricer&) {
         return checkmate_plan(profile, budget.device, settings);
       };
     },
     .remark = kept_units,
     .proof =
         [](const PolicyArguments& arguments, const StepProfile& profile, const Budget& budget,
            const MemoryPlan& plan) {
           return proved(profile, budget.device, static_cast<std::size_t>(arguments.integer("nodes")), plan);
         }}};

}  // namespace
}  // namespace memwall
