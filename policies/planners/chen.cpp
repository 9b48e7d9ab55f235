// Checkpoints by the greedy rule, or every sqrt(n) units.
//
// Chen, Xu, Zhang, Guestrin 2016, "Training Deep Nets with Sublinear Memory Cost" (arXiv 1604.06174), section 4:
//   greedy  Algorithm 3, memory planning with a budget b per segment: a segment ends once what it makes exceeds b. b is
//           searched as they propose, around sqrt(x y) of a first pass (x: bytes that are kept, y: the largest
//           segment); of all b the plan of the lowest peak is taken.
//   sqrt    section 4.1: segments of sqrt(n) of the n units each.
// Their figure: memory in O(sqrt n) of n equal layers, for one more forward
// (tests/unit/policies/planners/chen_test.cpp). Deviations: what is kept or dropped is decided per storage by what
// backward reads (policies/recompute), not per node of a graph; all segments are computed again, whatever the budget
// is.
#include <algorithm>
#include <cmath>

#include "policies/planners/forward_chain.h"
#include "policies/planners/kept_units.h"
#include "policies/planners/planner.h"
#include "policies/profile/planned_memory.h"
#include "policies/recompute/recompute.h"

namespace memwall {
namespace {

constexpr int kBudgetsTried = 6;  // on a grid from sqrt(x y / 2) to sqrt(2 x y), as in the paper

// A segment ends with the unit that makes its bytes more than `budget`.
std::vector<std::size_t> segments_of(const ForwardChain& chain, double budget) {
  std::vector<std::size_t> sizes;
  double open = -1;  // no segment is open
  for (const Bytes bytes : chain.saved) {
    if (open < 0) sizes.push_back(0), open = 0;
    ++sizes.back();
    open += static_cast<double>(bytes);
    if (open > budget) open = -1;
  }
  return sizes;
}

std::vector<std::size_t> equal_segments(const ForwardChain& chain) {
  const auto units = chain.units.size();
  const auto size = std::max<std::size_t>(1, static_cast<std::size_t>(std::sqrt(static_cast<double>(units))));
  std::vector<std::size_t> sizes(units / size, size);
  if (units % size != 0) sizes.push_back(units % size);
  return sizes;
}

template <typename Cut>
MemoryPlan plan_of(const StepProfile& p, const std::vector<ForwardChain>& chains, Cut cut) {
  RecomputePlan plan;
  plan.kept_until.assign(p.trace().storages.size(), 0);
  for (const ForwardChain& chain : chains)
    plan_recompute(p.trace(), p.flow(), chain.pass, joined_units(chain, cut(chain)), {}, plan);
  return memory_plan_of(p.trace(), p.flow(), plan);
}

MemoryPlan greedy_plan(const StepProfile& p, const std::vector<ForwardChain>& chains) {
  double kept = 0, largest = 0;
  for (const ForwardChain& chain : chains)
    for (const Bytes bytes : chain.saved) {
      kept += static_cast<double>(bytes);
      largest = std::max(largest, static_cast<double>(bytes));
    }
  const auto plan_for = [&](double budget) {
    return plan_of(p, chains, [&](const ForwardChain& chain) { return segments_of(chain, budget); });
  };
  MemoryPlan best = plan_for(0);  // their first pass: every unit is a segment
  Bytes lowest = planned_peak(p, best);
  for (int i = 0; i <= kBudgetsTried; ++i) {
    const double grid = std::exp2(static_cast<double>(i) / kBudgetsTried - 0.5);
    MemoryPlan plan = plan_for(std::sqrt(kept * largest) * grid);
    const Bytes peak = planned_peak(p, plan);
    if (peak >= lowest) continue;
    best = std::move(plan);
    lowest = peak;
  }
  return best;
}

const RegisterPlanner registered_chen{
    {.name = "chen",
     .sentence = "computes segments of forward again, cut where they hold too much (Chen et al. 2016)",
     .heeds_budget = false,
     .parameters = {choice("mode", "greedy", {"greedy", "sqrt"},
                           "greedy: a segment ends once it holds too much; sqrt: segments of sqrt(n) units.")},
     .make = [](const PolicyArguments& arguments) -> Planner {
       const bool greedy = arguments.choice("mode") == "greedy";
       return [greedy](const StepProfile& profile, const Budget&, const Machine&, const Pricer&) {
         const std::vector<ForwardChain> chains = forward_chains_of(profile);
         return greedy ? greedy_plan(profile, chains) : plan_of(profile, chains, equal_segments);
       };
     },
     .remark = kept_units}};

}  // namespace
}  // namespace memwall
