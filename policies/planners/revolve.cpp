// Checkpoints at binomial distances: the fewest forward steps for a number of checkpoints.
//
// Griewank, Walther 2000, "Algorithm 799: Revolve: An Implementation of Checkpointing for the Reverse or Adjoint Mode
// of Computational Differentiation" (ACM TOMS 26(1)); details from memory of the paper, not checked against its code.
// n equal steps are reversed with s checkpoints, of which the first state takes one. With beta(s, r) = (s + r)! / s! r!
// and the one r with beta(s, r-1) < n <= beta(s, r), no schedule advances by less than r n - beta(s+1, r-1) steps, and
// none of these runs a step more often than r times.
// Here a step is a unit of forward (forward_chains_of, joined as rotor_stages.h says), a state what the next unit
// reads. The program's own forward is the first of all passes: what advances beyond it is re-runs. Before its backward
// a unit is run again to have what that needs, as in the paper; the last unit keeps it from the program's forward.
// Without slots= the number of checkpoints is the largest within the budget, found by bisection of the planned peaks.
// Deviations: units are taken as equal, which they are not; rotor weighs their times and bytes. Where units may not run
// again (collectives, nodes of a CUDA graph) they are kept, and what stands between two of them is reversed by itself,
// with as many checkpoints each. Left out: the variant that does not know n beforehand (online checkpointing), and
// checkpoints on other tiers.
#include "policies/planners/revolve.h"

#include <algorithm>

#include "policies/planners/kept_units.h"
#include "policies/planners/planner.h"
#include "policies/planners/rotor_stages.h"
#include "policies/planners/stage_schedule.h"
#include "policies/profile/planned_memory.h"

namespace memwall {
namespace {

constexpr std::size_t kMostRevolvedUnits = 160;

using StepKind = RotorStep::Kind;

// (s + r)! / s! r!, no more than `most`.
std::uint64_t beta(std::uint64_t s, std::uint64_t r, std::uint64_t most) {
  std::uint64_t value = 1;
  for (std::uint64_t i = 1; i <= std::min(s, r); ++i) {
    value = value * (std::max(s, r) + i) / i;
    if (value >= most) return most;
  }
  return value;
}

// The r with beta(s, r-1) < n <= beta(s, r). REQUIRES: n >= 2.
std::uint64_t repetitions(std::uint64_t n, std::uint64_t s) {
  std::uint64_t r = 1;
  while (beta(s, r, n) < n) ++r;
  return r;
}

// How far to advance to the next checkpoint: any number does with which both parts have as many repetitions as the
// whole at most. The first part has m steps and s checkpoints for r - 1, the other n - m steps and s - 1 for r.
std::uint64_t advance(std::uint64_t n, std::uint64_t s) {
  const std::uint64_t r = repetitions(n, s);
  return std::min(beta(s, r - 1, n), n - beta(s - 1, r - 1, n));
}

void append_reversal(std::size_t first, std::size_t n, std::size_t s, std::vector<RotorStep>& steps) {
  const auto forward = [&](std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) steps.push_back({StepKind::forward, static_cast<std::uint32_t>(first + k)});
  };
  const auto turn = [&](std::size_t stage) {
    steps.push_back({StepKind::forward_saving, static_cast<std::uint32_t>(stage)});
    steps.push_back({StepKind::backward, static_cast<std::uint32_t>(stage)});
  };
  for (; s > 1 && n > 1;) {
    const std::size_t m = advance(n, s);
    forward(m);
    append_reversal(first + m, n - m, s - 1, steps);
    n = m;
  }
  for (; n > 0; --n) {
    forward(n - 1);
    turn(first + n - 1);
  }
}

// --- of a step's forward

// Units from `first` to before `end` that may run again, all of them or none.
struct Stretch {
  std::size_t first = 0, end = 0;
  bool is_repeatable = true;
};

std::vector<Stretch> stretches_of(const std::vector<RotorUnit>& units) {
  std::vector<Stretch> stretches;
  for (std::size_t k = 0; k < units.size(); ++k) {
    if (stretches.empty() || stretches.back().is_repeatable != units[k].is_repeatable)
      stretches.push_back({k, k, units[k].is_repeatable});
    ++stretches.back().end;
  }
  return stretches;
}

std::vector<RotorStep> steps_of(const RotorPass& pass, std::size_t slots) {
  const auto rest = static_cast<std::uint32_t>(pass.units.size());  // the stage behind the last unit
  std::vector<RotorStep> steps = {{StepKind::backward, rest}};
  const std::vector<Stretch> stretches = stretches_of(pass.units);
  for (std::size_t i = stretches.size(); i-- > 0;) {
    const auto [first, end, is_repeatable] = stretches[i];
    if (!is_repeatable) {
      for (std::size_t k = end; k-- > first;) steps.push_back({StepKind::backward, static_cast<std::uint32_t>(k)});
      continue;
    }
    const std::vector<RotorStep> reversal = revolve_steps(first, end - first, slots);
    // The program has come there by itself, and the last unit of all keeps what its backward needs.
    auto begin = std::find_if(reversal.begin(), reversal.end(),
                              [](const RotorStep& step) { return step.kind == StepKind::forward_saving; });
    if (i + 1 == stretches.size()) ++begin;
    steps.insert(steps.end(), begin, reversal.end());
  }
  return steps;
}

struct Chain {
  RotorPass pass;
  OpId backward = kNoOp;
};

MemoryPlan plan_with_slots(const StepProfile& p, const ParameterGathers& gathers, const std::vector<Chain>& chains,
                           std::size_t slots) {
  MemoryPlan plan;
  for (const Chain& chain : chains)
    add_schedule(p, gathers, chain.pass, chain.backward, steps_of(chain.pass, slots), plan);
  return plan;
}

// With the most checkpoints within the budget; where none are, those of the lowest peak among what was tried.
MemoryPlan plan_within(const StepProfile& p, const ParameterGathers& gathers, const std::vector<Chain>& chains,
                       Bytes budget) {
  std::size_t units = 1;
  for (const Chain& chain : chains) units = std::max(units, chain.pass.units.size());
  std::size_t fits = 0, fails = units + 1, next = units;
  MemoryPlan best, lowest;
  Bytes peak_of_lowest = -1;
  for (; fails - fits > 1; next = fits + (fails - fits) / 2) {
    MemoryPlan plan = plan_with_slots(p, gathers, chains, next);
    const Bytes peak = planned_peak(p, plan);
    (peak <= budget ? fits : fails) = next;
    if (peak <= budget) best = plan;
    if (peak_of_lowest >= 0 && peak >= peak_of_lowest) continue;
    peak_of_lowest = peak;
    lowest = std::move(plan);
  }
  return fits > 0 ? best : lowest;
}

MemoryPlan revolve_plan(const StepProfile& p, Bytes budget, std::size_t slots) {
  const ParameterGathers& gathers = p.gathers();
  std::vector<Chain> chains;
  for (const ForwardChain& chain : forward_chains_of(p)) {
    RotorPass pass = rotor_pass(p, gathers, chain, kMostRevolvedUnits);
    if (!pass.units.empty()) chains.push_back({std::move(pass), chain.pass.backward});
  }
  if (chains.empty()) return {};
  return slots > 0 ? plan_with_slots(p, gathers, chains, slots) : plan_within(p, gathers, chains, budget);
}

const RegisterPlanner registered_revolve{
    {.name = "revolve",
     .sentence = "computes units of forward again from checkpoints at binomial distances (Griewank, Walther 2000)",
     .heeds_budget_with = [](const PolicyArguments& arguments) { return !arguments.is_set("slots"); },
     .parameters = {integer("slots", Unset{"budget"}, {1, 4096}, "checkpoints",
                            "kept at once, what forward starts from among them; budget: as many as fit.")},
     .make = [](const PolicyArguments& arguments) -> Planner {
       const auto slots = static_cast<std::size_t>(arguments.integer_or("slots", 0));
       return [slots](const StepProfile& profile, const Budget& budget, const Machine&, const Pricer&) {
         return revolve_plan(profile, budget.device, slots);
       };
     },
     .remark = kept_units}};

}  // namespace

std::uint64_t revolve_reruns(std::uint64_t steps, std::uint64_t slots) {
  if (steps < 2) return 0;
  const std::uint64_t r = repetitions(steps, slots);
  return r * steps - beta(slots + 1, r - 1, r * steps);
}

std::vector<RotorStep> revolve_steps(std::size_t first, std::size_t steps, std::size_t slots) {
  std::vector<RotorStep> all;
  append_reversal(first, steps, slots, all);
  return all;
}

}  // namespace memwall
