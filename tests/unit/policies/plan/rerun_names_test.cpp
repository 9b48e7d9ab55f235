// Is a module named only where a second call of it repeats what the plan runs again, and what stays of an operator's
// results otherwise? Steps written by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include "policies/plan/plan_realization.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

StorageDecision dropped_behind(StorageId storage, OpId op) {
  StorageDecision decision;
  decision.storage = storage;
  decision.drops = {{{op, true}}};
  return decision;
}

PlanRealization named(const MemoryPlan& plan, const Trace& trace) {
  return realization_of(plan, trace, Dataflow(trace));
}

// A normalization's result is kept by what follows in the module; its mean alone is dropped, and made again.
TEST(RerunNames, ResultsThatStayAreCounted) {
  StepProgram p;
  const StorageId x = p.preexisting(100, StorageKind::input, "x");
  const StorageId y = p.make(100, "y"), mean = p.make(8, "mean"), g = p.make(100, "g");
  p.module("block");
  const OpId norm = p.op("layer_norm", {x}, {y, mean});
  p.saves({mean});
  p.op("gelu", {y}, {g});
  p.saves({y});
  p.backward();
  p.op("gelu_backward", {y, g}, {});
  p.drop(y);
  p.drop(g);
  const OpId asks = p.op("layer_norm_backward", {x, mean}, {});
  p.drop(mean);
  const Trace trace = std::move(p).finish();
  MemoryPlan plan;
  plan.storages = {dropped_behind(mean, norm)};
  plan.reruns = {{{asks, false}, {norm}}};
  const PlanRealization names = named(plan, trace);
  ASSERT_EQ(names.lazy_operators.size(), 1u)
      << (names.unnamed.empty() ? names.recompute.at(0).units[0][0] : names.unnamed[0].reason);
  EXPECT_EQ(names.lazy_operators[0].operators, (std::vector<NamedOperator>{{"block", "aten::layer_norm", {}, {0}}}));
  // Both dropped, none stays.
  plan.storages.push_back(dropped_behind(y, norm + 1));
  plan.reruns[0].at = {asks - 3, false};
  for (const OperatorRecompute& lazy : named(plan, trace).lazy_operators) EXPECT_TRUE(lazy.operators[0].keeps.empty());
}

// What module "a" makes again is what a later re-run starts from: a checkpointed module would make it and give it up.
TEST(RerunNames, WhatALaterRerunStartsFromIsNoUnitsResult) {
  StepProgram p;
  const StorageId x = p.preexisting(100, StorageKind::input, "x");
  const StorageId y = p.make(100, "y"), m = p.make(8, "m"), z = p.make(100, "z");
  p.module("a");
  const OpId one = p.op("one", {x}, {y, m});
  p.saves({m});
  p.module("b");
  const OpId two = p.op("two", {y}, {z});
  p.saves({z});
  p.backward();
  const OpId asks_z = p.op("two_backward", {z}, {});
  p.module("a");
  const OpId asks_m = p.op("one_backward", {m}, {});
  const Trace trace = std::move(p).finish();
  MemoryPlan plan;
  plan.storages = {dropped_behind(y, two), dropped_behind(m, one), dropped_behind(z, two)};
  plan.reruns = {{{asks_z, false, 0}, {one}}, {{asks_z, false, 1}, {two}}};
  const PlanRealization first = named(plan, trace);
  EXPECT_TRUE(std::ranges::none_of(first.recompute, [](const ModuleRecompute& recompute) {
    return std::ranges::find(recompute.units, std::vector<std::string>{"a"}) != recompute.units.end();
  }));
  // Run again behind the other, for its own backward alone, it is one.
  plan.storages.erase(plan.storages.begin());
  plan.reruns = {{{asks_z, false, 0}, {two}}, {{asks_m, false, 0}, {one}}};
  const PlanRealization alone = named(plan, trace);
  EXPECT_TRUE(std::ranges::any_of(alone.recompute, [](const ModuleRecompute& recompute) {
    return std::ranges::find(recompute.units, std::vector<std::string>{"a"}) != recompute.units.end();
  }));
}

// The plan leaves out an operator that a second call of the module would run: it is no call of the module.
TEST(RerunNames, AModuleIsRunAgainFromItsBeginning) {
  StepProgram p;
  const StorageId w = p.preexisting(64, StorageKind::parameter, "w"), b = p.preexisting(8, StorageKind::parameter, "b");
  const StorageId cast_b = p.make(4, "cast of b"), cast_w = p.make(32, "cast of w"), y = p.make(100, "y");
  p.module("linear");
  const OpId bias = p.op("cast_bias", {b}, {cast_b});
  const OpId weight = p.op("cast_weight", {w}, {cast_w});
  const OpId product = p.op("product", {cast_w, cast_b}, {y});
  p.saves({cast_w});
  p.backward();
  const OpId asks = p.op("product_backward", {cast_w}, {});
  const Trace trace = std::move(p).finish();
  MemoryPlan plan;
  plan.storages = {dropped_behind(cast_w, product)};
  plan.reruns = {{{asks, false}, {weight}}};
  EXPECT_TRUE(named(plan, trace).recompute.empty());
  EXPECT_EQ(named(plan, trace).lazy_operators.size(), 1u);
  plan.reruns[0].ops = {bias, weight};
  EXPECT_EQ(named(plan, trace).recompute.size(), 1u);
}

// A vision transformer's last block and the normalization of its class token: who calls the second with a view of what
// the first gave cannot be told to run both as one.
TEST(RerunNames, ModulesThatAreHandedAViewAreNotOne) {
  const auto planned = [](Bytes moved, int reads = 1, Bytes weight = 0) {
    StepProgram p;
    const StorageId x = p.preexisting(4000, StorageKind::input, "x");
    const StorageId w = p.preexisting(std::max<Bytes>(weight, 1), StorageKind::parameter, "w");
    const StorageId h = p.make(4000, "h"), y = p.make(4000, "y"), z = p.make(100, "z"), out = p.make(100, "out");
    const StorageId mean = p.make(8, "mean");
    p.module("block");
    const OpId one = p.op("gelu", {x}, {h});
    p.saves({x});
    const OpId two = p.op("gelu", {h}, {y});
    p.saves({h});
    p.module("norm");
    OpId norm = kNoOp;
    std::vector<OpId> again{one, two};
    for (int read = 0; read < reads; ++read) {
      again.push_back(norm = weight > 0 ? p.op("layer_norm", {y, w}, {z, mean}) : p.op("layer_norm", {y}, {z, mean}));
      p.builder().trace().ops[norm].bytes = moved + weight;
    }
    p.saves({y, mean});
    p.module("head");
    p.op("linear", {z}, {out});
    p.saves({z});
    p.backward();
    const OpId asks = p.op("linear_backward", {z}, {});
    p.module("norm");
    p.op("layer_norm_backward", {y, mean}, {});
    p.module("block");
    p.op("gelu_backward", {h}, {});
    p.op("gelu_backward", {x}, {});
    const Trace trace = std::move(p).finish();
    MemoryPlan plan;
    plan.storages = {dropped_behind(h, two), dropped_behind(y, norm), dropped_behind(mean, norm)};
    plan.reruns = {{{asks + 1, false}, again}};
    return named(plan, trace);
  };
  const PlanRealization whole = planned(4108);
  ASSERT_EQ(whole.recompute.size(), 1u);
  EXPECT_EQ(whole.recompute[0].units, (std::vector<std::vector<std::string>>{{"block", "norm"}}));
  const PlanRealization in_steps = planned(1108, 4);
  ASSERT_EQ(in_steps.recompute.size(), 1u) << "the module takes it apart by itself";
  EXPECT_EQ(in_steps.recompute[0].units, whole.recompute[0].units);
  for (const Bytes weight : {0, 9000}) {
    const PlanRealization part = planned(208, 1, weight);
    EXPECT_TRUE(part.recompute.empty()) << "parameters of " << weight << " bytes are read beside it";
    EXPECT_EQ(part.lazy_operators.size(), 1u);
    EXPECT_EQ(planned(4108, 1, weight).recompute.size(), 1u);
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
