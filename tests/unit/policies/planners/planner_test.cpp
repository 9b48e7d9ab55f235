// Do planners take their budgets as they are given, and do their notes say what became of them?
#include "policies/planners/planner.h"

#include <gtest/gtest.h>

#include "sim/human_text.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Trace gpt() { return gpt_step({.layers = 6, .hidden = 512, .heads = 8, .sequence = 512, .batch = 4}); }

TEST(Planner, AShareIsOfTheMemoryOfTheDevice) {
  const Machine machine = test_machine();
  const Trace step = gpt();
  const Bytes whole = machine.tiers.front().holds() - step.untracked_bytes;
  for (const char* planner : {"capuchin", "rotor"}) {
    EXPECT_TRUE(has_note(rewritten(step, std::string(planner) + ":budget=50%"),
                         std::string(planner) + ": budget " + human_bytes(whole / 2) + "; "));
    EXPECT_TRUE(has_note(rewritten(step, planner), std::string(planner) + ": budget " + human_bytes(whole) + "; "));
  }
}

TEST(Planner, ABudgetWithoutAUnitIsRefusedWithWhatMayBeMeant) {
  for (const char* planner : {"capuchin", "rotor", "chen", "vdnn"}) {
    const std::string refused = refusal(gpt(), std::string(planner) + ":budget=0.6");
    EXPECT_NE(refused.find("expected a size of at least 1 MiB, as 10GB, or a share, as 60%"), std::string::npos)
        << refused;
  }
}

// By the real allocator, not by a planner's count.
TEST(Planner, WhatKeepsToTheBudgetStaysAsItIs) {
  const Trace step = gpt();
  const Bytes reserved = simulate(step, test_machine(), {}).tiers.front().peak_reserved;
  for (const char* planner : {"capuchin", "capuchin:use=swaps", "rotor"}) {
    const std::string begin = std::string(planner) + (std::string(planner).find(':') == std::string::npos ? ":" : ",");
    const Trace kept = rewritten(step, begin + "budget=" + std::to_string(reserved));
    EXPECT_EQ(kept.ops.size(), step.ops.size()) << planner;
    EXPECT_TRUE(has_note(kept, "the step keeps to it as it is; nothing leaves the device.")) << planner;
    const Trace less = rewritten(step, begin + "budget=" + std::to_string(reserved * 9 / 10));
    EXPECT_GT(less.ops.size(), step.ops.size()) << planner;
    EXPECT_FALSE(has_note(less, "as it is")) << planner;
  }
}

TEST(Planner, PlanRunsNoUnitsAgainWhereNothingMay) {
  EXPECT_EQ(refusal(gpt(), "plan:budget=60%,reruns=units,recompute=0"),
            "Policy 'plan': reruns=units runs ops again, and recompute=0 forbids that; give one of them.");
}

// On a GPU with so much memory; kNever: it does not fit.
Duration step_time(const Trace& step, const std::string& policy, Bytes budget) {
  Machine machine = test_machine();
  Tier& device = machine.tiers.front();
  device.capacity = budget + device.unavailable + step.untracked_bytes;
  const auto pricer = test_pricer(machine);
  const SimulationResult result =
      simulate(apply_rewriters(step, {parse_policy(policy)}, machine, *pricer), machine, {});
  return result.tiers.front().missing > 0 ? kNever : result.end;
}

TEST(Planner, PlanIsNoSlowerThanItsFirstPlanAndOthersWhateverItsEffort) {
  const Trace step = gpt();
  const Bytes reserved = simulate(step, test_machine(), {}).tiers.front().peak_reserved;
  int fitting = 0;
  for (const Bytes percent : {40, 55, 70}) {
    const Bytes budget = reserved / 100 * percent;
    const Duration little = step_time(step, "plan:effort=0", budget), much = step_time(step, "plan", budget);
    for (const char* other : {"plan:search=0", "capuchin", "rotor", "chen", "torch_sac", "torch_budget"}) {
      const Duration time = step_time(step, other, budget);
      if (time == kNever) continue;
      ++fitting;
      // Others are not asked for less than a fifth of a percent.
      EXPECT_LE(to_seconds(little), 1.002 * to_seconds(time)) << other << " at " << percent << " %";
      EXPECT_LE(to_seconds(much), 1.002 * to_seconds(time)) << other << " at " << percent << " %";
    }
  }
  EXPECT_GE(fitting, 6);
  EXPECT_EQ(refusal(step, "plan:effort=-1").substr(0, 6), "Policy");
}

// The smallest budget is looked for with `any=1`, and is told of `search=0`.
TEST(Planner, AnyPlanIsFoundWhereTheFirstPlanIs) {
  const Trace step = gpt();
  const Bytes reserved = simulate(step, test_machine(), {}).tiers.front().peak_reserved;
  for (const std::string settings : {"plan:search=0", "plan:recompute=0,search=0"}) {
    int fit = 0, fail = 0;
    for (const Bytes percent : {2, 6, 10, 14, 20, 35, 60, 80}) {
      const Bytes budget = reserved / 100 * percent;
      const Duration first = step_time(step, settings, budget), any = step_time(step, settings + ",any=1", budget);
      EXPECT_EQ(any == kNever, first == kNever) << settings << " at " << percent << " %";
      EXPECT_GE(any, first) << settings << " at " << percent << " %";
      ++(first == kNever ? fail : fit);
    }
    EXPECT_GE(fit, 3);
    EXPECT_GE(fail, 2);
  }
}

TEST(Planner, WhoTakesNoNoticeOfABudgetSaysSo) {
  const Trace step = gpt();
  for (const std::string planner : {"chen", "vdnn"}) {
    const Trace without = rewritten(step, planner);
    EXPECT_TRUE(has_note(without, " are in use at the peak; ")) << planner;
    EXPECT_FALSE(has_note(without, "budget")) << planner;
    const Trace holds = rewritten(step, planner + ":budget=20GB");
    EXPECT_TRUE(has_note(holds, "its plan does not depend on the budget of 20.00 GB, which it keeps to; ")) << planner;
    EXPECT_EQ(holds.ops.size(), without.ops.size()) << planner;
    const Trace fails = rewritten(step, planner + ":budget=10MB");
    EXPECT_TRUE(has_note(fails, "its plan does not depend on the budget of 10.00 MB, and needs ")) << planner;
    EXPECT_TRUE(has_note(fails, " more; ")) << planner;
    EXPECT_EQ(fails.ops.size(), without.ops.size()) << planner;
  }
}

// Layers with a collective in each: none may be computed again.
TEST(Planner, WhoKeepsAllUnitsSaysWhy) {
  StepProgram p;
  Op collective;
  collective.kind = OpKind::collective;
  StorageId x = p.preexisting(512, StorageKind::input, "x");
  std::vector<StorageId> saved;
  for (int i = 0; i < 4; ++i) {
    p.module("layers." + std::to_string(i));
    const StorageId sum = p.make(MiB(20), "sum"), y = p.make(MiB(20), "y");
    p.op("all_reduce", {x}, {sum}, collective);
    p.op("gelu", {sum}, {y});
    p.drop(sum);
    saved.push_back(y);
    x = y;
  }
  p.module("");
  p.backward();
  for (std::size_t i = saved.size(); i-- > 0;) {
    p.op("back", {saved[i]}, {});
    p.drop(saved[i]);
  }
  const Trace step = std::move(p).finish();
  for (const char* planner : {"chen", "rotor:budget=50MiB"}) {
    const Trace after = rewritten(step, planner);
    EXPECT_EQ(count(after, Phase::recompute), 0u) << planner;
    EXPECT_TRUE(has_note(after, " kept; ")) << planner << after.notes.back();
    EXPECT_TRUE(has_note(after, "communicates with other ranks, and would again.")) << planner;
  }
}

TEST(Planner, WhoCopiesNeedsAWayToTheHostAndBack) {
  const Trace step = gpt();
  for (const std::string planner : {"capuchin:budget=10MB", "vdnn"}) {
    Machine machine = test_machine();
    std::erase_if(machine.routes, [&](const Route& route) { return route.from == machine.tier("host"); });
    const auto pricer = test_pricer(machine);
    try {
      apply_rewriters(step, {parse_policy(planner)}, machine, *pricer);
      FAIL() << planner << ": taken";
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("has no way from 'host' to 'hbm'"), std::string::npos) << error.what();
    }
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
