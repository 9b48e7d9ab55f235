// Where a trace says what autograd keeps: are units re-run as PyTorch re-runs them? Hand-written steps; every kernel
// lasts 1 us.
#include <gtest/gtest.h>

#include "tests/support/rewrite_checks.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Names = std::vector<std::string>;

// A unit of conv (keeps what it reads), batch_norm (keeps what it reads), relu_ (keeps its result, the unit's output)
// and, with `tail`, an add that keeps nothing. Behind it a head that keeps the output, too.
struct ResidualStep {
  StepProgram p;
  StorageId x = 0, a = 0, b = 0, out = 0, head = 0;
  explicit ResidualStep(bool says_what_is_kept = true, bool tail = false) {
    x = p.preexisting(100, StorageKind::input, "x");
    p.module("blocks.0");
    a = p.make(1000, "a");
    p.op("conv", {x}, {a});
    if (says_what_is_kept) p.saves({x});
    b = p.make(2000, "b");
    p.op("batch_norm", {a}, {b});
    if (says_what_is_kept) p.saves({a});
    p.op("relu_", {b}, {b});
    if (says_what_is_kept) p.saves({b});
    out = b;
    if (tail) {
      out = p.make(400, "out");
      p.op("add", {b, x}, {out});
    }
    p.module("head");
    head = p.make(10, "head");
    p.op("linear", {out}, {head});
    if (says_what_is_kept) p.saves({out});
    p.backward();
    p.op("linear_backward", {out, head}, {});
    p.drop(head);
    if (tail) p.drop(out);
    p.module("blocks.0");
    p.op("relu_backward", {b}, {});
    p.drop(b);
    p.op("batch_norm_backward", {a}, {});
    p.drop(a);
    p.op("conv_backward", {x}, {});
    p.module("");
    p.optimizer();
  }
  Trace finish() && { return std::move(p).finish(); }
};

TEST(CheckpointSaved, ThePrefixUpToTheLastTensorKeptIsRunAgain) {
  const Trace before = ResidualStep().finish(), after = rewritten(before, "checkpoint");
  // Backward needs a, which conv makes; PyTorch goes on to the result of relu_, the last tensor kept.
  EXPECT_EQ(rerun_operators(after), (Names{"aten::conv", "aten::batch_norm", "aten::relu_"}));
  expect_same_contents(before, after);
}

TEST(CheckpointSaved, WithoutThatTheReRunIsWhatBackwardReadsAndANoteSaysSo) {
  const Trace before = ResidualStep(false).finish(), after = rewritten(before, "checkpoint");
  EXPECT_EQ(rerun_operators(after), (Names{"aten::conv"}));
  EXPECT_TRUE(has_note(after, "of 1 unit the trace does not say what autograd keeps"));
  EXPECT_FALSE(has_note(rewritten(ResidualStep().finish(), "checkpoint"), "does not say what autograd keeps"));
}

TEST(CheckpointSaved, WhatKeepsNothingBehindItIsNotRunAgainUnlessTheStopIsOff) {
  const Trace before = ResidualStep(true, true).finish();
  EXPECT_EQ(rerun_operators(rewritten(before, "checkpoint")).back(), "aten::relu_");
  EXPECT_EQ(rerun_operators(rewritten(before, "checkpoint:early_stop=0")).back(), "aten::add");
}

TEST(CheckpointSaved, AnOpThatKeepsOnlyWhatItReadsIsWhereTheReRunEnds) {
  StepProgram p;
  const StorageId x = p.preexisting(100, StorageKind::input, "x");
  const StorageId bias = p.preexisting(100, StorageKind::parameter, "bias");
  p.module("blocks.0");
  const StorageId a = p.make(1000, "a"), cast = p.make(50, "cast"), out = p.make(700, "out");
  p.op("gelu", {x}, {a});
  p.saves({x});
  p.op("to_copy", {bias}, {cast});  // nobody keeps it, and it stands before the last tensor kept
  p.op("addmm", {cast, a}, {out});
  p.saves({a});  // before the kernel is called
  p.drop(cast);
  p.module("");
  p.op("sum", {out}, {});
  p.backward();
  p.module("blocks.0");
  p.op("mm", {a}, {});
  p.drop(a);
  p.drop(out);
  p.optimizer();
  const Trace before = std::move(p).finish(), after = rewritten(before, "checkpoint");
  EXPECT_EQ(rerun_operators(after), (Names{"aten::gelu", "aten::to_copy"}));
  expect_same_contents(before, after);
}

TEST(CheckpointSaved, AnOutputThatTheUnitKeepsIsMadeASecondTimeAndTheFirstGoesBefore) {
  const Trace before = ResidualStep().finish(), after = rewritten(before, "checkpoint");
  const std::vector<Bytes> live = live_bytes(after, StorageKind::activation);
  // Kept through forward for the head; given back behind the head's backward, before the re-run begins.
  EXPECT_EQ(live[first_of(after, Phase::backward)], 2000 + 10);
  EXPECT_EQ(live[first_of(after, Phase::recompute)], 0);
  // Behind the re-run both a and the second b live: the first is not read again.
  std::size_t writes_of_out = 0;
  for (const Op& op : after.ops)
    for (const Use& use : after.uses_of(op)) writes_of_out += use.access == Access::write && use.storage == 2;
  EXPECT_EQ(writes_of_out, 2u);  // batch_norm and relu_ of forward
  EXPECT_EQ(activation_peak(after), 3000);
  EXPECT_TRUE(has_note(after, "of results that units hand on are made a second time"));
}

TEST(CheckpointSaved, InputsLiveUntilTheBackwardOfTheUnitIsOver) {
  StepProgram p;
  const StorageId x = p.preexisting(100, StorageKind::input, "x");
  p.module("norm");
  const StorageId y = p.make(5000, "y");
  p.op("layer_norm", {x}, {y});
  p.saves({x});
  p.module("blocks.0");
  const StorageId cast = p.make(2500, "cast"), out = p.make(700, "out");
  p.op("to_copy", {y}, {cast});
  p.op("gelu", {cast}, {out});
  p.saves({cast});
  p.drop(y);  // the cast is kept; what it was made of is not
  p.module("head");
  p.op("sum", {out}, {});
  p.drop(out);
  p.backward();
  p.module("blocks.0");
  p.op("gelu_backward", {cast}, {});
  p.op("more_backward", {cast}, {});
  p.drop(cast);
  p.module("");
  const OpId last = p.op("norm_backward", {x}, {});
  p.optimizer();
  const Trace before = std::move(p).finish(), after = rewritten(before, "checkpoint");
  ASSERT_EQ(before.ops[last].kind, OpKind::kernel);
  const std::vector<Bytes> live = live_bytes(after, StorageKind::activation);
  std::vector<Bytes> in_backward;  // before each kernel of backward
  for (OpId id = 0; id < after.ops.size(); ++id)
    if (after.ops[id].phase == Phase::backward && after.ops[id].kind == OpKind::kernel) in_backward.push_back(live[id]);
  // y and the second cast, until the unit's last backward op; the rest of backward has neither.
  EXPECT_EQ(in_backward, (std::vector<Bytes>{7500, 7500, 0}));
}

// Of each kernel of a phase, in order: the activations that live when it is called.
std::vector<Bytes> live_at_kernels(const Trace& t, Phase phase) {
  const std::vector<Bytes> live = live_bytes(t, StorageKind::activation);
  std::vector<Bytes> at;
  for (OpId id = 0; id < t.ops.size(); ++id)
    if (t.ops[id].phase == phase && t.ops[id].kind == OpKind::kernel) at.push_back(live[id]);
  return at;
}

// A product under autocast: casts of its weight, which autograd keeps, and of its bias, which it does not.
Trace autocast_step() {
  StepProgram p;
  const StorageId x = p.preexisting(100, StorageKind::input, "x");
  const StorageId weight = p.preexisting(4000, StorageKind::parameter, "weight");
  const StorageId bias = p.preexisting(20, StorageKind::parameter, "bias");
  p.module("blocks.0");
  const StorageId a = p.make(500, "a"), cast = p.make(2000, "cast"), small = p.make(10, "small");
  p.op("relu", {x}, {a});
  p.op("_to_copy", {weight}, {cast});
  p.op("_to_copy", {bias}, {small});
  const StorageId b = p.make(300, "b"), c = p.make(70, "c");
  p.op("addmm", {small, a, cast}, {b});
  p.saves({a, cast});
  p.op("exp", {b}, {c});
  p.saves({c});
  p.drop(b);
  p.module("head");
  p.op("sum", {c}, {});
  p.drop(small);  // the context of autocast ends
  p.backward();
  p.module("blocks.0");
  p.op("exp_backward", {c}, {});
  p.drop(c);
  p.op("mm", {cast}, {});
  p.op("mm", {a}, {});
  p.op("sum", {}, {});  // of the gradient, for the bias: the node lets go behind it
  p.drop(cast);
  p.drop(a);
  p.module("");
  p.op("last", {}, {});
  p.optimizer();
  return std::move(p).finish();
}

TEST(CheckpointSaved, CastsOfParametersLiveAsLongAsAutocastKeepsThem) {
  const Trace before = autocast_step(), after = rewritten(before, "checkpoint");
  const std::vector<Bytes> forward = live_at_kernels(after, Phase::forward);
  // Before the sum: both casts, and c, which the sum reads. a is gone with its last use.
  EXPECT_EQ(forward.back(), 2000 + 10 + 70);
  EXPECT_EQ(live_bytes(after, StorageKind::activation)[first_of(after, Phase::backward)], 0);
  expect_same_contents(before, after);
}

TEST(CheckpointSaved, WhatWasMadeAgainGoesWithTheLastKernelOfItsNode) {
  // exp_backward; both products of the node, with the cast and a to the second's call; the sum has neither.
  EXPECT_EQ(live_at_kernels(rewritten(autocast_step(), "checkpoint"), Phase::backward),
            (std::vector<Bytes>{2570, 2500, 2500, 0, 0}));
  EXPECT_EQ(live_at_kernels(autocast_step(), Phase::backward), (std::vector<Bytes>{2570, 2500, 2500, 2500, 0}));
}

// --- units that PyTorch refuses

// stem.0 makes a; stem.1 works in place on it; stem.2 reads it.
Trace in_place_across_modules() {
  StepProgram p;
  const StorageId x = p.preexisting(100, StorageKind::input, "x");
  p.module("stem.0");
  const StorageId a = p.make(1000, "a"), mean = p.make(10, "mean");
  p.op("batch_norm", {x}, {a, mean});
  p.saves({x, mean});
  p.module("stem.1");
  p.op("relu_", {a}, {a});
  p.saves({a});
  p.module("stem.2");
  const StorageId b = p.make(500, "b"), index = p.make(500, "index");
  p.op("max_pool", {a}, {b, index});
  p.saves({a, index});
  p.module("");
  p.op("sum", {b}, {});
  p.drop(b);
  p.backward();
  p.module("stem.2");
  p.op("max_pool_backward", {a, index}, {});
  p.drop(index);
  p.module("stem.1");
  p.op("relu_backward", {a}, {});
  p.drop(a);
  p.module("stem.0");
  p.op("batch_norm_backward", {mean}, {});
  p.drop(mean);
  p.module("");
  p.optimizer();
  return std::move(p).finish();
}

TEST(CheckpointJoined, AModuleThatWorksInPlaceIsOneUnitWithItsProducer) {
  const Trace before = in_place_across_modules();
  for (const char* policy : {"checkpoint:mode=full", "checkpoint:modules=stem.*"}) {
    const Trace after = rewritten(before, policy);
    EXPECT_TRUE(has_note(after, "2 units (stem.0..stem.1 to stem.2)")) << policy;
    EXPECT_TRUE(
        has_note(after, "stem.0..stem.1 is one unit: aten::relu_ of stem.1 works in place on what stem.0 makes"));
    expect_same_contents(before, after);
  }
}

TEST(CheckpointJoined, AnInPlaceModuleWhoseProducerIsNotNamedIsRefused) {
  const std::string why = refusal(in_place_across_modules(), "checkpoint:modules=stem.1");
  EXPECT_NE(why.find("can re-run none of 1 units"), std::string::npos) << why;
  EXPECT_NE(why.find("'aten::relu_' works in place on storage 1 'a', which is not made in the unit"), std::string::npos)
      << why;
}

TEST(CheckpointJoined, AnInputThatIsOverwrittenBehindTheUnitIsRefused) {
  StepProgram p;
  const StorageId x = p.preexisting(100, StorageKind::input, "x");
  const StorageId a = p.make(1000, "a");
  p.op("conv", {x}, {a});
  p.module("blocks.0");
  const StorageId b = p.make(500, "b");
  p.op("mul", {a}, {b});
  p.op("exp_", {b}, {b});
  p.saves({b});
  p.module("");
  p.op("relu_", {a}, {a});
  p.op("sum", {b, a}, {});
  p.backward();
  p.module("blocks.0");
  p.op("exp_backward", {b}, {});
  for (const StorageId s : {b, a}) p.drop(s);
  p.optimizer();
  const std::string why = refusal(std::move(p).finish(), "checkpoint:modules=blocks.0");
  EXPECT_NE(why.find("on which op"), std::string::npos) << why;
  EXPECT_NE(why.find("'aten::relu_' works in place before the re-run: PyTorch refuses that"), std::string::npos) << why;
}

// --- how many of the units

Trace six_layers() {
  StepProgram p;
  StorageId x = p.preexisting(100, StorageKind::input, "x");
  std::vector<StorageId> all;
  for (int i = 0; i < 6; ++i) {
    p.module("layers." + std::to_string(i));
    const StorageId a = p.make(1000, "a"), b = p.make(10, "b");
    p.op("linear" + std::to_string(i), {x}, {a});
    p.op("gelu", {a}, {b});
    p.saves({a});
    all.insert(all.end(), {a, b});
    x = b;
  }
  p.module("");
  p.op("sum", {x}, {});
  p.backward();
  for (int i = 6; i-- > 0;) {
    p.module("layers." + std::to_string(i));
    p.op("gelu_backward", {all[2 * static_cast<std::size_t>(i)]}, {});
    p.drop(all[2 * static_cast<std::size_t>(i) + 1]);
    p.drop(all[2 * static_cast<std::size_t>(i)]);
  }
  p.module("");
  p.optimizer();
  return std::move(p).finish();
}

TEST(RecomputeShare, LayersAreTheFirstOrEveryNth) {
  const Trace before = six_layers();
  EXPECT_EQ(rerun_operators(rewritten(before, "checkpoint:layers=2")), (Names{"aten::linear1", "aten::linear0"}));
  // As torchtitan and torchtune wrap every third layer: the third and the sixth.
  EXPECT_EQ(rerun_operators(rewritten(before, "checkpoint:layers=2,spread=even")),
            (Names{"aten::linear5", "aten::linear2"}));
  EXPECT_EQ(rerun_operators(rewritten(before, "checkpoint:fraction=0.5,spread=even")),
            (Names{"aten::linear5", "aten::linear3", "aten::linear1"}));
  EXPECT_EQ(rerun_operators(rewritten(before, "checkpoint:layers=6,spread=even")).size(), 6u);
}

TEST(RecomputeShare, MoreLayersThanThereAreAndTwoAmountsAreRefused) {
  EXPECT_NE(refusal(six_layers(), "checkpoint:layers=7").find("layers=7, but trace 'small step' has 6 units"),
            std::string::npos);
  EXPECT_NE(refusal(six_layers(), "checkpoint:layers=2,fraction=0.5").find("both say how many units"),
            std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
