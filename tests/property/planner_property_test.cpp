// Does each planner, on random steps and budgets, give a plan that can be carried out: a sound trace without races in
// which every kernel reads what it read? And does what it says of the budget hold in the simulation?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/carried_out.h"
#include "tests/support/random_step.h"
#include "tests/support/rewrite_checks.h"

namespace memwall {
namespace {

// The policy with a random budget between half and all of what the step takes. Returns the trace that it makes.
Trace planned(const Trace& before, const std::string& policy, Bytes& budget) {
  const Bytes peak = simulated(before).tiers[0].peak_allocated;
  budget = *rc::gen::inRange<Bytes>(peak / 2, peak + 2);
  const Trace after = rewritten(before, policy + ",budget=" + std::to_string(budget + 1));
  assert_carried_out(before, after);
  return after;
}

RC_GTEST_PROP(PlannerProperty, PlansAreCarriedOut, ()) {
  const Trace before = random_step(*rc::gen::inRange<std::size_t>(1, 3));
  const std::string policy = *rc::gen::element<std::string>("chen:mode=greedy", "chen:mode=sqrt", "vdnn:min_bytes=0",
                                                            "capuchin:min_bytes=0", "capuchin:min_bytes=0,use=swaps");
  RC_TAG(policy);
  Bytes budget = 0;
  planned(before, policy, budget);
}

// Blocks are of 512 bytes and segments of 2 MiB, so that the bytes of small steps tell nothing of what is reserved:
// held against the blocks.
RC_GTEST_PROP(PlannerProperty, CapuchinKeepsToItsBudgetOrSaysSo, ()) {
  const Trace before = random_step(1);
  Bytes budget = 0;
  const Trace after = planned(before, "capuchin:min_bytes=0", budget);
  SimulationOptions options;
  options.allocator = "pytorch";
  const Bytes blocks = simulate(after, test_machine(), options).tiers[0].peak_allocated;
  const bool kept = !has_note(after, "more are needed");
  RC_CLASSIFY(kept, "kept");
  if (kept) RC_ASSERT(blocks <= budget + 1);
}

}  // namespace
}  // namespace memwall
