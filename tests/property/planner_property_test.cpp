// Does each planner, on random steps and budgets, give a plan that can be carried out: a sound trace without races in
// which every kernel reads what it read? And does what it says of the budget hold in the simulation?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "policies/solver/linear_program.h"
#include "study/study.h"
#include "tests/support/carried_out.h"
#include "tests/support/random_step.h"
#include "tests/support/rewrite_checks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// A random step whose storages are of 1 to 20 MB, so that the allocator's segments of 2 MiB tell one budget from
// another.
Trace large_step(std::size_t passes) {
  constexpr int kTimes = 10'000;
  Trace step = random_step(passes);
  for (Storage& storage : step.storages) storage.bytes *= kTimes;
  for (Op& op : step.ops) op.duration *= kTimes;
  return step;
}

// The policy with a random budget between half and all of what the step takes. Returns the trace that it makes.
Trace planned(const Trace& before, const std::string& policy, Bytes& budget) {
  const Bytes peak = simulated(before).tiers[0].peak_allocated;
  budget = std::max(MiB(1), *rc::gen::inRange<Bytes>(peak / 2, peak + MiB(2)));
  const Trace after =
      rewritten(before, policy + (policy.find(':') == policy.npos ? ":" : ",") + "budget=" + std::to_string(budget));
  assert_carried_out(before, after);
  return after;
}

RC_GTEST_PROP(PlannerProperty, PlansAreCarriedOut, ()) {
  const Trace before = large_step(*rc::gen::inRange<std::size_t>(1, 3));
  const std::string policy = *rc::gen::element<std::string>(
      "chen:mode=greedy", "chen:mode=sqrt", "vdnn:min_bytes=0", "capuchin:min_bytes=0",
      "capuchin:min_bytes=0,use=swaps", "rotor:slots=100", "revolve:slots=2", "revolve:slots=4",
      "superneurons:min_bytes=0,offload=dense,recompute=memory",
      "superneurons:min_bytes=0,offload=none,recompute=speed", "g10:min_bytes=0,delta=0", "swapadvisor:min_bytes=0",
      "ssdtrain:min_bytes=0", "ssdtrain:min_bytes=0,to=host,amount=all", "deepcompile:min_bytes=0",
      "mincut:aggressive=1", "torch_budget:memory_budget=0.5", "torch_budget:memory_budget=0",
      "torch_sac:memory_budget=0.5", "torchtitan", "megatron:recompute_granularity=full,recompute_method=uniform",
      "plan", "plan:recompute=0,search=0");
  RC_TAG(policy);
  Bytes budget = 0;
  planned(before, policy, budget);
}

// On a device with the budget as its memory; and a step that has room there as it is stays as it is.
RC_GTEST_PROP(PlannerProperty, PlannersKeepToTheirBudgetOrSaySo, ()) {
  const Trace before = large_step(1);
  const std::string policy = *rc::gen::element<std::string>(
      "capuchin:min_bytes=0", "capuchin:min_bytes=0,use=swaps", "rotor:slots=100", "g10:min_bytes=0,delta=0",
      "swapadvisor:min_bytes=0", "deepcompile:min_bytes=0", "torch_budget", "torch_sac", "plan", "plan:effort=1",
      "revolve", "superneurons:min_bytes=0", "superneurons:min_bytes=0,offload=dense",
      LinearProgram::is_available() ? "checkmate:nodes=6,search_nodes=5" : "revolve");
  RC_TAG(policy);
  Bytes budget = 0;
  const Trace after = planned(before, policy, budget);
  Machine machine = test_machine();
  machine.tiers[0].capacity = machine.tiers[0].unavailable + budget;
  machine.tiers[0].compression_ratio = 1;
  const bool kept = !has_note(after, "more are needed");
  RC_CLASSIFY(kept, "kept");
  RC_CLASSIFY(kept && after.ops.size() > before.ops.size(), "kept by a plan");
  RC_ASSERT(simulate(after, machine, {}).tiers[0].missing == 0 || !kept);
  if (simulate(before, machine, {}).tiers[0].missing == 0) RC_ASSERT(after.ops.size() == before.ops.size());
}

// A plan for less memory is a plan for more.
RC_GTEST_PROP(PlannerProperty, WhatKeepsToABudgetIsFoundForALargerOneToo, ()) {
  const Trace before = large_step(1);
  const std::string policy = *rc::gen::element<std::string>("plan", "plan:search=0", "plan:recompute=0");
  RC_TAG(policy);
  const Bytes peak = simulated(before).tiers[0].peak_allocated;
  bool kept = false;
  int changes = 0;
  for (const int percent : {50, 60, 70, 80, 90}) {
    const std::string budget = std::to_string(std::max(MiB(1), peak * percent / 100));
    const Trace after = rewritten(before, policy + (policy == "plan" ? ":" : ",") + "budget=" + budget);
    const bool keeps = !has_note(after, "more are needed");
    RC_ASSERT(keeps || !kept);
    changes += keeps && !kept ? 1 : 0;
    kept = keeps;
  }
  RC_CLASSIFY(changes > 0, "kept from some budget on");
}

// Where the allocator's pieces decide, too: a parameter that is away leaves its segment to a bias behind it, and which
// blocks find a place changes with every budget.
TEST(PlannerBudgets, ALargerBudgetGetsNoSlowerPlan) {
  const std::string samples = MEMWALL_SOURCE "/traces/samples/";
  struct Sample {
    std::string step, machine;
    std::vector<std::string> budgets;  // rising
  };
  const Sample all[] = {
      {"gpt_124m.mwt", "a100-sxm-40gb", {"3.3GB", "3.54GB", "3.7GB", "3.85GB", "4GB", "4.4GB", "5GB"}},
      {"captures/gpt2_124m.mwc.gz", "a100-sxm-80gb", {"3.8GB", "4.4GB", "4.92GB", "5.6GB"}},
      {"captures/resnet50.mwc.gz", "a100-sxm-80gb", {"2GB", "2.6GB", "3.66GB"}},
      {"captures/vit_l.mwc.gz", "a100-sxm-80gb", {"5.17GB", "6GB", "7.24GB"}}};
  for (const Sample& sample : all) {
    Study study;
    Duration fastest = kNever;
    for (const std::string& budget : sample.budgets) {
      SCOPED_TRACE(sample.step + " within " + budget);
      Scenario scenario{.step = {samples + sample.step}, .machine = sample.machine};
      scenario.budget = budget;
      scenario.policies = {"plan:search=0,budget=" + budget};
      const memwall::Run run = study.run(scenario, {.record = false}).run;
      EXPECT_TRUE(run.result.fits && run.trace->keeps_to_budgets());
      if (fastest < kNever) {
        EXPECT_LE(to_seconds(mean_step(run)), 1.01 * to_seconds(fastest));
      }
      fastest = std::min(fastest, mean_step(run));
    }
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
