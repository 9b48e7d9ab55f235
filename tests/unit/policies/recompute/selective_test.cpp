// Does selective checkpointing keep results of operators, run the rest again and call everything? Hand-written steps.
#include <gtest/gtest.h>

#include "tests/support/rewrite_checks.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::vector<std::string> names_of(const Trace& t, Phase phase) {
  std::vector<std::string> names;
  for (const Op& op : t.ops)
    if (op.phase == phase && op.kind == OpKind::kernel) names.push_back(t.strings[op.operator_name]);
  return names;
}

using OpNames = std::vector<std::string>;

// norm -> addmm -> gelu -> addmm -> dropout in one unit. Autograd keeps every operator's input, dropout its mask;
// the second product (300 bytes) is freed in forward. A call takes 2 us on the host, of which 1 us is dispatch.
Trace mlp_step(bool says_what_is_kept = true, const std::string& middle = "gelu", bool in_place = false) {
  StepProgram p;
  const StorageId x = p.preexisting(100, StorageKind::input, "x");
  p.module("blocks.0");
  const auto call = [&](const std::string& name, std::vector<StorageId> reads, std::vector<StorageId> writes,
                        std::vector<StorageId> kept) {
    p.op(name, reads, writes);
    Op& op = p.builder().trace().ops.back();
    op.host_gap = microseconds(1);
    op.host_cost = microseconds(1);
    if (says_what_is_kept) p.saves(kept);
  };
  const StorageId n = p.make(1000, "n");
  call("native_layer_norm", {x}, {n}, {x});
  const StorageId a = p.make(4000, "a");
  call("addmm", {n}, {a}, {n});
  const StorageId g = in_place ? a : p.make(4000, "g");
  call(middle, {a}, {g}, {in_place ? g : a});
  const StorageId o = p.make(300, "o");
  call("addmm", {g}, {o}, {g});
  const StorageId d = p.make(300, "d"), mask = p.make(75, "mask");
  call("native_dropout", {o}, {d, mask}, {mask});
  p.drop(o);
  p.module("head");
  p.op("sum", {d}, {});
  p.drop(d);
  p.backward();
  p.module("blocks.0");
  for (const StorageId s : in_place ? std::vector<StorageId>{mask, g, n} : std::vector<StorageId>{mask, g, a, n}) {
    p.op("backward", {s}, {});
    p.drop(s);
  }
  p.module("");
  p.optimizer();
  return std::move(p).finish();
}

TEST(Selective, ResultsOfNamedOperatorsAreKeptAndTheRestIsRunAgain) {
  const Trace before = mlp_step(), after = rewritten(before, "selective:save=mm");
  EXPECT_EQ(names_of(after, Phase::recompute),
            (OpNames{"aten::native_layer_norm", "aten::gelu", "aten::native_dropout"}));
  expect_same_contents(before, after);
  // Both products, the second of which autograd would not have kept; not what the products read.
  EXPECT_EQ(live_bytes(after, StorageKind::activation)[first_of(after, Phase::backward)], 4000 + 300);
  const Trace full = rewritten(before, "checkpoint");
  EXPECT_EQ(live_bytes(full, StorageKind::activation)[first_of(full, Phase::backward)], 0);
}

TEST(Selective, KeepingWhatAutogradDoesNotMayCostMoreThanNoPlan) {
  const Trace before = mlp_step(), after = rewritten(before, "selective:save=gelu+native_layer_norm+addmm");
  const OpId was = first_of(before, Phase::backward), is = first_of(after, Phase::backward);
  EXPECT_EQ(live_bytes(before, StorageKind::activation)[was], 1000 + 4000 + 4000 + 75);
  EXPECT_EQ(live_bytes(after, StorageKind::activation)[is], 1000 + 4000 + 4000 + 300);
}

TEST(Selective, TheHostCallsTheWholeUnitAgain) {
  const Trace before = mlp_step();
  const SimulationResult base = simulated(before);
  // 3 ops with 2 us each and the dispatch of two products; the first microsecond goes by while the head's sum runs.
  EXPECT_EQ(simulated(rewritten(before, "selective:save=mm")).end - base.end, microseconds(3 * 2 + 2 - 1));
  EXPECT_EQ(simulated(rewritten(before, "checkpoint")).end - base.end, microseconds(5 * 2 - 1));
}

TEST(Selective, WhatIsCalledBehindTheLastRerunOpTakesTheHostsTimeToo) {
  // Kept: the mask's op. The re-run ends with the call that hands it out.
  const Trace before = mlp_step(), after = rewritten(before, "selective:save=native_dropout");
  EXPECT_EQ(names_of(after, Phase::recompute),
            (OpNames{"aten::native_layer_norm", "aten::addmm", "aten::gelu", "aten::addmm"}));
  Op last;
  for (const Op& op : after.ops)
    if (op.phase == Phase::recompute && op.kind != OpKind::free) last = op;
  EXPECT_EQ(last.kind, OpKind::mark);
  EXPECT_EQ(last.host_gap, microseconds(1));
}

TEST(Selective, AKeptResultThatIsOverwrittenIsRefused) {
  const std::string why = refusal(mlp_step(true, "gelu_", true), "selective:save=mm");
  EXPECT_NE(why.find("'aten::gelu_' works in place on it: PyTorch refuses that (\"has been mutated\")"),
            std::string::npos)
      << why;
  const std::string place = refusal(mlp_step(true, "gelu_", true), "selective:save=gelu_");
  EXPECT_NE(place.find("works in place, and only what an operator makes anew can be kept"), std::string::npos) << place;
}

TEST(Selective, AnOperatorThatIsNotThereIsRefusedWithWhatIs) {
  const std::string why = refusal(mlp_step(), "selective:save=sdpa");
  EXPECT_NE(why.find("save=sdpa matches no forward op"), std::string::npos) << why;
  EXPECT_NE(refusal(mlp_step(), "selective:save=mm+gelo").find("gelu"), std::string::npos);
  // A network without one family of operators may have another.
  EXPECT_EQ(refusal(mlp_step(), "selective:save=mm+sdpa"), "");
}

TEST(Selective, WithoutKnowingWhatIsKeptItRunsUpToTheLastResultThatBackwardReads) {
  const Trace before = mlp_step(false), after = rewritten(before, "selective:save=mm");
  EXPECT_EQ(names_of(after, Phase::recompute),
            (OpNames{"aten::native_layer_norm", "aten::gelu", "aten::native_dropout"}));
  EXPECT_TRUE(has_note(after, "computed again is all up to the last result that backward reads"));
  expect_same_contents(before, after);
}

// norm -> addmm -> gelu -> addmm -> add in one unit, whose last two results nobody keeps; a later unit reads the sum.
Trace feed_forward_step(Dispatch dispatch, bool reads_product = true) {
  StepProgram p;
  const StorageId x = p.preexisting(300, StorageKind::input, "x");
  p.module("blocks.0");
  const auto call = [&](const std::string& name, const std::vector<StorageId>& reads, Bytes bytes) {
    const StorageId made = p.make(bytes, name);
    p.op(name, reads, {made});
    p.builder().trace().ops.back().dispatch = dispatch;
    return made;
  };
  const StorageId n = call("native_layer_norm", {x}, 1000), a = call("addmm", {n}, 4000), g = call("gelu", {a}, 4000),
                  o = call("addmm", {g}, 200), y = call("add", {x, o}, 300);
  p.drop(o);
  if (!reads_product) p.drop(a);
  p.module("head");
  p.op("sum", {y}, {});
  p.drop(y);
  p.backward();
  p.module("blocks.0");
  for (const StorageId s : reads_product ? std::vector<StorageId>{g, a, n} : std::vector<StorageId>{g, n}) {
    p.op("backward", {s}, {});
    p.drop(s);
  }
  p.module("");
  p.optimizer();
  return std::move(p).finish();
}

TEST(Selective, OfCompiledCodeOnlyWhatBackwardNeedsIsKeptOrRunAgain) {
  const auto kept = [](const Trace& t) { return live_bytes(t, StorageKind::activation)[first_of(t, Phase::backward)]; };
  const Trace eager = feed_forward_step(Dispatch::eager), compiled = feed_forward_step(Dispatch::compiled);
  const Trace before = rewritten(eager, "selective:save=mm"), after = rewritten(compiled, "selective:save=mm");
  EXPECT_EQ(kept(before), 4000 + 200);  // both products
  EXPECT_EQ(kept(after), 4000);         // backward does not need the second
  EXPECT_EQ(names_of(after, Phase::recompute), (OpNames{"aten::native_layer_norm", "aten::gelu"}));
  EXPECT_TRUE(has_note(after, "1 unit is compiled: computed again is what backward needs"));
  EXPECT_FALSE(has_note(after, "the trace does not say what autograd keeps"));
  expect_same_contents(compiled, after);
}

TEST(Selective, OfCompiledCodeAProductThatIsKeptIsNotRunAgainThoughForwardGivesItBack) {
  const Trace after = rewritten(feed_forward_step(Dispatch::compiled, false), "selective:save=mm");
  EXPECT_EQ(names_of(after, Phase::recompute), (OpNames{"aten::native_layer_norm", "aten::gelu"}));
  EXPECT_EQ(live_bytes(after, StorageKind::activation)[first_of(after, Phase::backward)], 4000);
}

TEST(Checkpoint, OfCompiledCodeNoEarlyStopRunsNoMoreAgain) {
  const Trace eager = feed_forward_step(Dispatch::eager), compiled = feed_forward_step(Dispatch::compiled);
  EXPECT_EQ(names_of(rewritten(eager, "checkpoint:early_stop=0"), Phase::recompute).size(), 5u);
  EXPECT_EQ(names_of(rewritten(compiled, "checkpoint:early_stop=0"), Phase::recompute),
            (OpNames{"aten::native_layer_norm", "aten::addmm", "aten::gelu"}));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
