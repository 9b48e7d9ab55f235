// Do the decisions of a plan get the names by which a program can do the same, and does what has none say so?
#include "policies/plan/plan_realization.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "policies/plan/plan_check.h"
#include "sim/policy/registry.h"
#include "study/study.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Units = std::vector<std::vector<std::string>>;

PlanRealization realized(const Trace& trace, const std::string& policy) {
  const Machine machine = test_machine();
  const PlannedStep step = plan_rewriters(trace, {parse_policy(policy)}, machine, *test_pricer(machine));
  return realization_of(step.plan, step.trace, Dataflow(step.trace));
}

Trace small_gpt(int layers = 4) { return gpt_step({.layers = layers, .hidden = 64, .sequence = 64, .batch = 8}); }

// A decision on every storage that `chosen` wants, dropped behind its last use in forward and made again, with what
// must be run for that, before backward needs it first.
MemoryPlan dropped_and_run_again(const Trace& trace, const Dataflow& flow, const std::set<StorageId>& chosen,
                                 const std::vector<OpId>& ops) {
  const Pass pass = passes(trace).front();
  MemoryPlan plan;
  OpId first_use = kNoOp;
  for (const StorageId s : chosen) {
    StorageDecision decision;
    decision.storage = s;
    OpId last = 0;
    for (const Touch& touch : flow.touches(s))
      if (touch.op < pass.backward)
        last = touch.op;
      else
        first_use = std::min(first_use, touch.op);
    decision.drops.push_back({{last, true}});
    plan.storages.push_back(std::move(decision));
  }
  plan.reruns.push_back({{first_use, false}, ops});
  return plan;
}

TEST(PlanRealization, BlocksThatAreDroppedWholeAreModulesInTheOrderOfForward) {
  const PlanRealization full = realized(small_gpt(), "checkpoint:mode=full");
  ASSERT_EQ(full.recompute.size(), 1u);
  EXPECT_EQ(full.recompute[0].units, (Units{{"layers.0"}, {"layers.1"}, {"layers.2"}, {"layers.3"}}));
  EXPECT_TRUE(full.recompute[0].early_stop);
  EXPECT_TRUE(full.recompute[0].preserve_rng) << "dropout";
  EXPECT_TRUE(full.recompute[0].save_operators.empty());
  EXPECT_TRUE(full.lazy_operators.empty());
  EXPECT_TRUE(full.offload.empty());
  EXPECT_TRUE(full.unnamed.empty()) << full.unnamed.front().reason;
  EXPECT_EQ(full.forwards, 1u);
}

TEST(PlanRealization, SeveralBlocksThatAreRunAgainAsOneStandTogether) {
  const PlanRealization pairs = realized(small_gpt(), "checkpoint:every=2");
  ASSERT_EQ(pairs.recompute.size(), 1u);
  EXPECT_EQ(pairs.recompute[0].units, (Units{{"layers.0", "layers.1"}, {"layers.2", "layers.3"}}));
  const PlanRealization parts = realized(small_gpt(), "checkpoint:modules=layers.*.mlp");
  ASSERT_EQ(parts.recompute.size(), 1u);
  EXPECT_EQ(parts.recompute[0].units, (Units{{"layers.0.mlp"}, {"layers.1.mlp"}, {"layers.2.mlp"}, {"layers.3.mlp"}}));
  EXPECT_TRUE(parts.unnamed.empty());
}

TEST(PlanRealization, WhatIsRunBehindTheLastNeededOpIsNoEarlyStop) {
  const PlanRealization whole = realized(small_gpt(2), "checkpoint:mode=full,early_stop=0");
  ASSERT_EQ(whole.recompute.size(), 1u);
  EXPECT_FALSE(whole.recompute[0].early_stop);
}

TEST(PlanRealization, OperatorsWhoseResultsGoAreNamedOneByOne) {
  const PlanRealization lazy = realized(small_gpt(2), "checkpoint:ops=gelu");
  EXPECT_TRUE(lazy.recompute.empty()) << "a second call of the module would keep the result";
  ASSERT_EQ(lazy.lazy_operators.size(), 2u);
  EXPECT_EQ(lazy.lazy_operators[0].operators, (std::vector<NamedOperator>{{"layers.0.mlp", "aten::gelu"}}));
  EXPECT_EQ(lazy.lazy_operators[1].operators, (std::vector<NamedOperator>{{"layers.1.mlp", "aten::gelu"}}));
  EXPECT_FALSE(lazy.lazy_operators[0].preserve_rng);
  EXPECT_TRUE(lazy.unnamed.empty());
}

// Of what attention keeps, the results of linear layers and of dropout stay, and the re-run starts from them.
TEST(PlanRealization, WhatStaysOfAModuleIsAListOfOperators) {
  const Trace trace = small_gpt(2);
  const Dataflow flow(trace);
  const Pass pass = passes(trace).front();
  std::set<StorageId> dropped;
  std::set<OpId> makers;
  std::set<std::string> kept;
  for (StorageId s = 0; s < trace.storages.size(); ++s) {
    if (!is_saved_activation(trace, flow, pass, s) || flow.touches(s).back().op < pass.backward) continue;
    const Op& maker = trace.ops[flow.writers(s).front()];
    if (trace.strings[maker.module] != "layers.0.attention") continue;
    const std::string& name = trace.strings[maker.operator_name];
    if (name == "aten::linear" || name == "aten::native_dropout") {
      kept.insert(name);
      continue;
    }
    dropped.insert(s);
    for (const OpId writer : flow.writers(s)) makers.insert(writer);
  }
  ASSERT_EQ(kept.size(), 2u);
  // What is run again needs its inputs: those that forward frees are made again, too.
  for (bool grown = true; grown;) {
    grown = false;
    for (const OpId id : std::set<OpId>(makers))
      for (const Use& use : trace.uses_of(trace.ops[id])) {
        const OpId writer = flow.writer(use.storage, use.version);
        const bool is_gone = use.access == Access::read && writer != kNoOp && flow.free(use.storage) < pass.backward;
        grown = (is_gone && makers.insert(writer).second) || grown;
      }
  }
  const MemoryPlan plan = dropped_and_run_again(trace, flow, dropped, std::vector<OpId>(makers.begin(), makers.end()));
  const std::vector<std::string> problems = check_plan(plan, trace, flow);
  ASSERT_TRUE(problems.empty()) << problems.front();
  const PlanRealization part = realization_of(plan, trace, flow);
  ASSERT_EQ(part.recompute.size(), 1u);
  EXPECT_EQ(part.recompute[0].units, (Units{{"layers.0.attention"}}));
  EXPECT_EQ(part.recompute[0].save_operators, (std::vector<std::string>{"aten::linear", "aten::native_dropout"}));
}

TEST(PlanRealization, WhatTravelsIsNamedByItsMakersWithHowManyGoFirst) {
  const Trace trace = small_gpt(2);
  const PlanRealization sent = realized(trace, "offload:what=activations,to=host,min_bytes=0,buffers=3");
  ASSERT_EQ(sent.offload.size(), 1u);
  const NamedOffload& offload = sent.offload.front();
  EXPECT_EQ(offload.first, offload.storages) << "the last ones stay, the first go";
  std::uint64_t storages = 0;
  Bytes bytes = 0;
  for (const NamedStorages& row : offload.saved) {
    storages += row.storages;
    bytes += row.bytes;
  }
  EXPECT_EQ(storages, offload.storages);
  EXPECT_EQ(bytes, offload.bytes);
  EXPECT_EQ(offload.buffers, 4u) << "three in flight, and the one that begins";
  const auto gelu = std::find_if(offload.saved.begin(), offload.saved.end(),
                                 [](const NamedStorages& row) { return row.made_by.name == "aten::gelu"; });
  ASSERT_NE(gelu, offload.saved.end());
  EXPECT_EQ(gelu->made_by, (NamedOperator{"layers.0.mlp", "aten::gelu"}));
  EXPECT_TRUE(sent.recompute.empty());
  EXPECT_TRUE(sent.unnamed.empty());

  // Without the very first storage the rest is no longer the first.
  const Machine machine = test_machine();
  PlannedStep step = plan_rewriters(trace, {parse_policy("offload:what=activations,to=host,min_bytes=0")}, machine,
                                    *test_pricer(machine));
  const auto at = [](const StorageDecision& d) { return d.copies.front().at; };
  step.plan.storages.erase(
      std::min_element(step.plan.storages.begin(), step.plan.storages.end(),
                       [&](const StorageDecision& a, const StorageDecision& b) { return at(a) < at(b); }));
  EXPECT_EQ(realization_of(step.plan, trace, Dataflow(trace)).offload.front().first, std::nullopt);
}

// Half of the blocks are run again, of the others everything travels.
TEST(PlanRealization, OfBothKindsOfDecisionsEachHasItsNames) {
  const Trace trace = small_gpt(4);
  const Dataflow flow(trace);
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  MemoryPlan plan =
      plan_rewriters(trace, {parse_policy("checkpoint:modules=layers.0+layers.1")}, machine, *pricer).plan;
  MemoryPlan sent =
      plan_rewriters(trace, {parse_policy("offload:what=activations,to=host,min_bytes=0")}, machine, *pricer).plan;
  plan.tiers = sent.tiers;
  std::uint64_t travels = 0;
  for (StorageDecision& d : sent.storages) {
    const std::string& module = trace.strings[trace.ops[flow.writers(d.storage).front()].module];
    if (!module.starts_with("layers.2") && !module.starts_with("layers.3")) continue;
    plan.storages.push_back(std::move(d));
    ++travels;
  }
  ASSERT_TRUE(check_plan(plan, trace, flow).empty()) << check_plan(plan, trace, flow).front();
  const PlanRealization both = realization_of(plan, trace, flow);
  ASSERT_EQ(both.recompute.size(), 1u);
  EXPECT_EQ(both.recompute[0].units, (Units{{"layers.0"}, {"layers.1"}}));
  ASSERT_EQ(both.offload.size(), 1u);
  EXPECT_EQ(both.offload[0].storages, travels);
  for (const NamedStorages& row : both.offload[0].saved)
    EXPECT_TRUE(row.made_by.module.starts_with("layers.2") || row.made_by.module.starts_with("layers.3"))
        << row.made_by.module;
  EXPECT_TRUE(both.unnamed.empty()) << both.unnamed.front().reason;
}

TEST(PlanRealization, ForwardsThatArePlannedAlikeAreOne) {
  const GptShape two{.layers = 2, .hidden = 64, .sequence = 64, .batch = 8, .steps = 2};
  const Trace trace = gpt_step(two);
  const PlanRealization both = realized(trace, "checkpoint:mode=full");
  EXPECT_EQ(both.forwards, 2u);
  ASSERT_EQ(both.recompute.size(), 1u);
  EXPECT_EQ(both.recompute[0].units, (Units{{"layers.0"}, {"layers.1"}}));
  EXPECT_TRUE(both.unnamed.empty());
  // A plan that leaves the second alone is none that a program could follow.
  const Machine machine = test_machine();
  PlannedStep step = plan_rewriters(trace, {parse_policy("checkpoint:mode=full")}, machine, *test_pricer(machine));
  const OpId second = passes(trace)[1].begin;
  std::erase_if(step.plan.storages, [&](const StorageDecision& d) { return d.drops.front().at.op >= second; });
  std::erase_if(step.plan.reruns, [&](const PlannedRerun& rerun) { return rerun.at.op >= second; });
  const PlanRealization once = realization_of(step.plan, trace, Dataflow(trace));
  ASSERT_EQ(once.unnamed.size(), 1u);
  EXPECT_EQ(once.unnamed[0].reason,
            "Forward 2 of 2 is planned otherwise than the first; a program cannot tell them apart.");
}

TEST(PlanRealization, StatesThatLiveElsewhereAreNamedUnlessTheyAreAll) {
  const Trace trace = small_gpt(1);
  const Dataflow flow(trace);
  MemoryPlan plan;
  plan.tiers.push_back({"host", "", true, true, 2, TierClass::host});
  for (StorageId s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages[s].kind != StorageKind::optimizer_state || !trace.storages[s].preexisting) continue;
    StorageDecision d;
    d.storage = s;
    d.home = 0;
    const auto touches = flow.touches(s);
    d.fetches.push_back({{touches.front().op, false}, 0});
    d.copies.push_back({{touches.back().op, true}, 0});
    d.drops.push_back({{touches.back().op, true, 1}});
    plan.storages.push_back(std::move(d));
  }
  ASSERT_GT(plan.storages.size(), 2u);
  ASSERT_TRUE(check_plan(plan, trace, flow).empty()) << check_plan(plan, trace, flow).front();
  const PlanRealization all = realization_of(plan, trace, flow);
  ASSERT_EQ(all.homes.size(), 1u);
  EXPECT_TRUE(all.homes[0].all);
  EXPECT_TRUE(all.homes[0].lives_there);
  EXPECT_EQ(all.homes[0].kind, StorageKind::optimizer_state);
  EXPECT_TRUE(all.homes[0].names.empty());
  EXPECT_TRUE(all.unnamed.empty());
  const StorageId left = plan.storages.back().storage;
  plan.storages.pop_back();
  const PlanRealization some = realization_of(plan, trace, flow);
  EXPECT_FALSE(some.homes[0].all);
  EXPECT_EQ(some.homes[0].names.size(), plan.storages.size());
  EXPECT_EQ(
      std::count(some.homes[0].names.begin(), some.homes[0].names.end(), trace.strings[trace.storages[left].label]), 0);
}

TEST(PlanRealization, WhatHasNoNameSaysWhy) {
  Trace nameless = small_gpt(2);
  nameless.knowledge.modules = false;
  for (Op& op : nameless.ops) op.module = 0;
  const PlanRealization plan = realized(nameless, "checkpoint:mode=full");
  EXPECT_TRUE(plan.recompute.empty());
  ASSERT_EQ(plan.unnamed.size(), 2u);
  EXPECT_EQ(plan.unnamed[1].reason, "Nobody uses it again, and no checkpointed module holds it.");
  EXPECT_EQ(plan.unnamed[0].what, "recompute");
  EXPECT_EQ(plan.unnamed[0].reason, "The trace does not know modules.");
  EXPECT_GT(plan.unnamed[0].storages, 0u);
  EXPECT_GT(plan.unnamed[0].bytes, 0);
}

TEST(PlanRealization, NamesOfTheProfilerAreNoPathsInTheModel) {
  Trace trace = small_gpt(2);
  const PlanRealization paths = realized(trace, "checkpoint:mode=full");
  for (Op& op : trace.ops) {
    std::string name = trace.strings[op.module];
    if (name.empty()) continue;
    const bool in_layer = name.starts_with("layers.");
    op.module = trace.strings.intern(in_layer ? "GPT_0.Layer_" + name.substr(7, 1) : "GPT_0.Other_0");
  }
  const PlanRealization classes = realized(trace, "checkpoint:mode=full");
  ASSERT_EQ(classes.recompute.size(), 1u);
  EXPECT_EQ(classes.recompute[0].units, (Units{{"GPT_0.Layer_0"}, {"GPT_0.Layer_1"}}));
  EXPECT_TRUE(paths.unnamed.empty());
  ASSERT_EQ(classes.unnamed.size(), 1u);
  EXPECT_EQ(classes.unnamed[0].what, "modules");
}

// A capture that the project ships: the names are PyTorch's.
TEST(PlanRealization, OfACaptureHasTheModulesOfTheNetwork) {
  Study study;
  Scenario scenario;
  scenario.step = {MEMWALL_SOURCE "/traces/samples/captures/gpt2_124m.mwc.gz"};
  scenario.machine = "h100-sxm-80gb";
  const auto of = [&](const std::string& policy) {
    scenario.policies = {policy};
    const PlannedStep step = study.plan(scenario);
    return realization_of(step.plan, step.trace, Dataflow(step.trace));
  };
  const PlanRealization full = of("checkpoint:mode=full");
  ASSERT_EQ(full.recompute.size(), 1u);
  ASSERT_EQ(full.recompute[0].units.size(), 12u);
  for (std::size_t i = 0; i < 12; ++i)
    EXPECT_EQ(full.recompute[0].units[i], std::vector<std::string>{"h." + std::to_string(i)});
  EXPECT_TRUE(full.unnamed.empty());

  const PlanRealization gelu = of("checkpoint:ops=gelu");
  ASSERT_EQ(gelu.lazy_operators.size(), 12u);
  EXPECT_EQ(gelu.lazy_operators[11].operators, (std::vector<NamedOperator>{{"h.11", "aten::gelu"}}));

  const PlanRealization sent = of("offload:what=activations,to=host");
  ASSERT_EQ(sent.offload.size(), 1u);
  EXPECT_EQ(sent.offload[0].storages, 169u) << "as the policy's note says";
  EXPECT_EQ(sent.offload[0].bytes, 3'045'064'704) << "as a program that executed it copied";
  EXPECT_EQ(sent.offload[0].first, 169u);
}

PlanRealization of_planned_capture(const std::string& capture, const std::string& policy) {
  Study study;
  Scenario scenario;
  scenario.step = {MEMWALL_SOURCE "/traces/samples/captures/planned/" + capture + ".mwc.gz"};
  scenario.machine = "h100-sxm-80gb";
  scenario.policies = {policy};
  const PlannedStep step = study.plan(scenario);
  return realization_of(step.plan, step.trace, Dataflow(step.trace));
}

// What selective checkpointing keeps has its name, too, where backward does not read it but the re-run does.
TEST(PlanRealization, KeptResultsThatOnlyTheRerunReadsAreNamed) {
  const PlanRealization kept = of_planned_capture("resnet-base", "selective:modules=stem,save=convolution");
  ASSERT_EQ(kept.recompute.size(), 1u);
  EXPECT_EQ(kept.recompute[0].units, (Units{{"stem.0", "stem.1", "stem.2", "stem.3"}}));
  EXPECT_EQ(kept.recompute[0].save_operators, std::vector<std::string>{"aten::convolution"});
  // Nothing but casts is run again in the two linear layers; attention stands between them, so that they are no unit.
  const PlanRealization attention = of_planned_capture("gpt-base", "selective:save=mm+sdpa,modules=h.*.attention");
  ASSERT_EQ(attention.recompute.size(), 1u);
  EXPECT_EQ(attention.recompute[0].units, (Units{{"h.0.attention"}, {"h.1.attention"}, {"h.2.attention"}}));
  EXPECT_EQ(attention.recompute[0].save_operators,
            (std::vector<std::string>{"aten::_scaled_dot_product_flash_attention", "aten::addmm"}));
}

TEST(PlanRealization, SelectiveUnitsOfSeveralBlocksAreNamed) {
  const PlanRealization two = of_planned_capture("gpt-base", "selective:save=mm+sdpa,every=2");
  EXPECT_TRUE(two.lazy_operators.empty());
  ASSERT_FALSE(two.recompute.empty());
  EXPECT_EQ(two.recompute[0].units[0], (std::vector<std::string>{"h.0", "h.1"}));
}

// A second run of relu_ or of a counter's add_ would change what is there.
TEST(PlanRealization, SingleOperatorsInPlaceHaveNoName) {
  const PlanRealization plan = of_planned_capture("resnet-base", "selective:save=convolution,every=2");
  for (const OperatorRecompute& lazy : plan.lazy_operators)
    for (const NamedOperator& named : lazy.operators) EXPECT_FALSE(named.name.ends_with("_")) << named.name;
  ASSERT_FALSE(plan.unnamed.empty());
  EXPECT_EQ(plan.unnamed[0].reason, "It repeats operators that work in place, without the whole of their module.");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
