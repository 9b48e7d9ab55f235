// Which ops does a unit re-run, what can it not re-run, and where is a forward without modules cut?
// Hand-written steps; every kernel lasts 1 us unless said otherwise.
#include <gtest/gtest.h>

#include "tests/support/rewrite_checks.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// x -> a -> relu_ (in place on a) -> b; backward of b reads a, backward of x reads nothing of it.
struct InPlaceStep {
  StepProgram p;
  StorageId x = 0, a = 0, b = 0;
  explicit InPlaceStep(const Op& middle = {}, const std::string& middle_name = "mul") {
    x = p.preexisting(100, StorageKind::input, "x");
    p.module("blocks.0");
    a = p.make(1000, "a");
    p.op("conv", {x}, {a});
    p.op("relu_", {a}, {a});
    p.op(middle_name, {a}, {a}, middle);
    b = p.make(500, "b");
    p.op("conv", {a}, {b});
    p.module("");
    p.backward();
    const StorageId d = p.make(1000, "d", StorageKind::workspace);
    p.op("conv_backward", {b, a}, {d});
    p.drop(b);
    p.drop(a);
    p.drop(d);
    p.optimizer();
  }
  Trace finish() && { return std::move(p).finish(); }
};

TEST(CheckpointInPlace, TheWholeChainIsRunAgain) {
  const Trace before = InPlaceStep().finish(), after = rewritten(before, "checkpoint");
  EXPECT_EQ(rerun_operators(after), (std::vector<std::string>{"aten::conv", "aten::relu_", "aten::mul", "aten::conv"}));
  expect_same_contents(before, after);
  EXPECT_EQ(live_bytes(after, StorageKind::activation)[first_of(after, Phase::backward)], 0);
}

TEST(CheckpointInPlace, AnInputThatTheUnitOverwritesIsMadeAgainByItsProducer) {
  StepProgram p;
  const StorageId x = p.preexisting(100, StorageKind::input, "x");
  const StorageId a = p.make(1000, "a");
  p.op("conv", {x}, {a});  // outside of the unit
  p.module("blocks.0");
  const StorageId c = p.make(300, "c");
  p.op("pool", {a}, {c});  // reads a before ...
  const StorageId b = p.make(500, "b");
  p.op("mul", {c}, {b});
  p.module("");
  p.op("relu_", {a}, {a});  // ... it is overwritten
  const StorageId loss = p.make(4, "loss");
  p.op("sum", {b, a}, {loss});
  p.backward();
  p.op("pool_backward", {c, a}, {});
  for (const StorageId s : {loss, b, c, a}) p.drop(s);
  p.optimizer();
  const Trace before = std::move(p).finish(), after = rewritten(before, "checkpoint");
  EXPECT_EQ(rerun_operators(after), (std::vector<std::string>{"aten::conv", "aten::pool"}));
  expect_same_contents(before, after);
}

TEST(CheckpointRefuses, AnInputThatIsGoneForGood) {
  StepProgram p;
  const StorageId x = p.preexisting(100, StorageKind::input, "x");
  p.module("blocks.0");
  const StorageId a = p.make(1000, "a");
  p.op("conv", {x}, {a});
  p.module("");
  p.op("normalize_", {x}, {x});
  p.backward();
  p.op("conv_backward", {a}, {});
  p.drop(a);
  p.optimizer();
  const std::string why = refusal(std::move(p).finish(), "checkpoint");
  EXPECT_NE(why.find("can re-run none of 1 units"), std::string::npos) << why;
  EXPECT_NE(why.find("blocks.0: op 2 'aten::conv' reads storage 0 'x', which is overwritten"), std::string::npos)
      << why;
}

TEST(CheckpointRefuses, ItemInAUnit) {
  Op wait;
  wait.kind = OpKind::copy;
  wait.wait_for = WaitFor::own_op;
  const std::string why = refusal(InPlaceStep(wait, "item").finish(), "checkpoint");
  EXPECT_NE(why.find("'aten::item' makes the host wait for the device, as .item() does"), std::string::npos) << why;
}

TEST(CheckpointRefuses, CollectivesUnlessAllowed) {
  Op all_reduce;
  all_reduce.kind = OpKind::collective;
  all_reduce.collective = CollectiveKind::all_reduce;
  const Trace trace = InPlaceStep(all_reduce, "all_reduce").finish();
  EXPECT_NE(refusal(trace, "checkpoint").find("communicates with other ranks"), std::string::npos);
  EXPECT_EQ(count(rewritten(trace, "checkpoint:allow_collectives=1"), Phase::recompute), 4u);
}

TEST(CheckpointRefuses, OnlyTheUnitThatCannotBeRerun) {
  Op all_reduce;
  all_reduce.kind = OpKind::collective;
  StepProgram p;
  StorageId x = p.preexisting(100, StorageKind::input, "x");
  std::vector<StorageId> all;
  for (int i = 0; i < 3; ++i) {
    p.module("blocks." + std::to_string(i));
    const StorageId a = p.make(1000, "a"), b = p.make(500, "b");
    p.op("conv", {x}, {a}, i == 1 ? all_reduce : Op{});
    p.op("gelu", {a}, {b});
    all.insert(all.end(), {a, b});
    x = b;
  }
  p.module("");
  p.backward();
  for (std::size_t i = all.size(); i-- > 0;) {
    p.op("backward", {all[i]}, {});
    p.drop(all[i]);
  }
  p.optimizer();
  const Trace before = std::move(p).finish(), after = rewritten(before, "checkpoint");
  EXPECT_TRUE(has_note(after, "unit blocks.1 is left as it was: op"));
  // The first and the last a go; b of the last block is its own output, yet nobody outside reads it in forward.
  EXPECT_EQ(live_bytes(after, StorageKind::activation)[first_of(after, Phase::backward)], 1000 + 2 * 500);
  expect_same_contents(before, after);
}

TEST(CheckpointSideEffects, RandomNumbersAreDrawnFromTheSavedState) {
  EXPECT_TRUE(has_note(rewritten(InPlaceStep({}, "native_dropout").finish(), "checkpoint"),
                       "aten::native_dropout draws random numbers; the re-run draws the same"));
  EXPECT_FALSE(has_note(rewritten(InPlaceStep({}, "operand").finish(), "checkpoint"), "draws random numbers"));
}

TEST(CheckpointSideEffects, RunningStatisticsAreUpdatedASecondTimeAsPyTorchDoes) {
  StepProgram p;
  const StorageId x = p.preexisting(100, StorageKind::input, "x");
  const StorageId mean = p.preexisting(64, StorageKind::parameter, "running_mean");
  p.module("blocks.0");
  const StorageId a = p.make(1000, "a"), b = p.make(500, "b");
  p.op("batch_norm", {x, mean}, {a, mean});
  p.op("relu", {a}, {b});
  p.module("");
  p.backward();
  p.op("backward", {a, b}, {});
  p.drop(b);
  p.drop(a);
  p.optimizer();
  const Trace after = rewritten(std::move(p).finish(), "checkpoint");
  std::size_t updates = 0;
  for (const Use& use : after.uses) updates += use.storage == mean && use.access == Access::write ? 1 : 0;
  EXPECT_EQ(updates, 2u);
  EXPECT_EQ(after.storages.size(), 6u);  // x, the mean, a and b, and both again: no copy of the mean
  EXPECT_EQ(count(after, Phase::recompute), 2u);
  EXPECT_TRUE(has_note(after,
                       "aten::batch_norm updates what lives across steps (running statistics); the re-run updates it a "
                       "second time"));
}

TEST(CheckpointStreams, BackwardOfAnotherStreamWaitsForTheRerun) {
  StepProgram p;
  const std::uint16_t side = p.builder().add_stream("side", StreamRole::compute);
  const StorageId x = p.preexisting(100, StorageKind::input, "x");
  p.module("blocks.0");
  const StorageId a = p.make(1000, "a");
  Op slow;
  slow.duration = microseconds(50);
  p.op("conv", {x}, {a}, slow);
  p.module("");
  p.backward();
  const std::uint32_t event = p.builder().add_event();
  Op call = p.here(OpKind::event_record);
  call.target = event;
  p.builder().append(call);
  p.on_stream(side);
  call = p.here(OpKind::event_wait);
  call.target = event;
  p.builder().append(call);
  p.op("conv_backward", {a}, {});
  p.drop(a);
  p.optimizer();
  Trace before = std::move(p).finish();
  before.constants.event_latency = {};
  const Trace after = rewritten(before, "checkpoint");
  EXPECT_EQ(simulated(before).end, microseconds(51));
  EXPECT_EQ(simulated(after).end, microseconds(101));
}

TEST(CheckpointSteps, GradientAccumulationIsTwoPassesOfOneStep) {
  StepProgram p;
  const StorageId x = p.preexisting(100, StorageKind::input, "x");
  for (int i = 0; i < 2; ++i) {
    if (i == 1) p.forward();
    p.module("blocks.0");
    const StorageId a = p.make(1000, "a");
    p.op("conv", {x}, {a});
    p.module("");
    p.backward();
    p.op("conv_backward", {a}, {});
    p.drop(a);
  }
  p.optimizer();
  const Trace before = std::move(p).finish(), after = rewritten(before, "checkpoint");
  EXPECT_EQ(count(after, Phase::recompute), 2u);
  expect_same_contents(before, after);
}

TEST(CheckpointSteps, AHandOverToAFreeThatWentStillHolds) {
  StepProgram p;
  const StorageId x = p.preexisting(100, StorageKind::input, "x");
  p.module("blocks.0");
  const StorageId scores = p.make(1000, "scores"), a = p.make(1000, "a");
  p.op("bmm", {x}, {scores});
  p.op("softmax", {scores}, {a});
  p.drop(scores);  // the op that backward is handed over from; ops=softmax keeps the storage instead
  p.module("");
  p.backward();
  p.op("softmax_backward", {a}, {});
  p.drop(a);
  p.optimizer();
  const Trace before = std::move(p).finish(), after = rewritten(before, "checkpoint:ops=softmax");
  expect_same_contents(before, after);
  EXPECT_EQ(simulated(after).end - simulated(before).end, microseconds(1));
}

TEST(CheckpointHeld, WhatTheProgramItselfHoldsIsNotDropped) {
  StepProgram p;
  const StorageId x = p.preexisting(100, StorageKind::input, "x");
  p.module("blocks.0");
  const StorageId a = p.make(1000, "a"), logits = p.make(700, "logits");
  p.op("conv", {x}, {a});
  p.op("linear", {a}, {logits});
  p.module("");
  p.backward();
  p.op("backward", {a, logits}, {});
  p.drop(a);
  p.optimizer();
  p.drop(logits);  // Python's variable goes out of scope long after backward
  const Trace after = rewritten(std::move(p).finish(), "checkpoint");
  EXPECT_EQ(live_bytes(after, StorageKind::activation)[first_of(after, Phase::backward)], 700);
}

// --- Segments where no modules are known ---

TEST(CheckpointSegments, AChainIsCutWhereOneOutputIsAllThatIsNeeded) {
  StepProgram p;
  StorageId x = p.preexisting(100, StorageKind::input, "x");
  std::vector<StorageId> all;
  for (int i = 0; i < 6; ++i) {
    const StorageId a = p.make(1000, "a");
    p.op("conv", {x}, {a});
    p.op("relu_", {a}, {a});
    all.push_back(x = a);
  }
  p.backward();
  for (std::size_t i = all.size(); i-- > 0;) {
    p.op("backward", {all[i]}, {});
    p.drop(all[i]);
  }
  p.optimizer();
  Trace before = std::move(p).finish();
  before.knowledge.modules = false;
  const Trace after = rewritten(before, "checkpoint");
  // Pairs of conv + relu_: the first's output goes, the second's is the next segment's start; behind the
  // last there is no next, so all of it goes.
  EXPECT_TRUE(has_note(after, "3 units (segment 0 (aten::conv to aten::relu_) to segment 2"));
  EXPECT_EQ(live_bytes(after, StorageKind::activation)[first_of(after, Phase::backward)], 2 * 1000);
  expect_same_contents(before, after);
}

TEST(CheckpointSegments, AResidualBlockIsNotCutInside) {
  StepProgram p;
  StorageId x = p.preexisting(100, StorageKind::input, "x");
  std::vector<StorageId> all;
  const StorageId stem = p.make(1000, "stem");
  p.op("conv", {x}, {stem});
  all.push_back(x = stem);
  for (int i = 0; i < 3; ++i) {
    const StorageId a = p.make(1000, "a"), b = p.make(1000, "b"), sum = p.make(1000, "sum");
    p.op("conv", {x}, {a});
    p.op("conv", {a}, {b});
    p.op("add", {x, b}, {sum});
    all.insert(all.end(), {a, b, sum});
    x = sum;
  }
  p.backward();
  for (std::size_t i = all.size(); i-- > 0;) {
    p.op("backward", {all[i]}, {});
    p.drop(all[i]);
  }
  p.optimizer();
  Trace before = std::move(p).finish();
  before.knowledge.modules = false;
  const Trace after = rewritten(before, "checkpoint");
  EXPECT_TRUE(has_note(after, "3 units"));  // the stem holds nothing of its own and goes with the first block
  EXPECT_EQ(live_bytes(after, StorageKind::activation)[first_of(after, Phase::backward)], 2 * 1000);
  expect_same_contents(before, after);
}

// --- Which modules are blocks ---

// Three times conv and gelu, both outputs kept for backward; modules are the given names and a number.
Trace conv_relu_chain(const std::string& conv_module, const std::string& relu_module) {
  StepProgram p;
  StorageId x = p.preexisting(100, StorageKind::input, "x");
  std::vector<StorageId> all;
  for (int i = 0; i < 3; ++i) {
    const StorageId a = p.make(1000, "a"), b = p.make(1000, "b");
    p.module(conv_module + std::to_string(i));
    p.op("conv", {x}, {a});
    p.module(relu_module + std::to_string(i));
    p.op("gelu", {a}, {b});
    all.insert(all.end(), {a, b});
    x = b;
  }
  p.module("");
  p.backward();
  for (std::size_t i = all.size(); i-- > 0;) {
    p.op("backward", {all[i]}, {});
    p.drop(all[i]);
  }
  p.optimizer();
  return std::move(p).finish();
}

TEST(CheckpointBlocks, AreTheOutermostNumberedModules) {
  EXPECT_TRUE(has_note(rewritten(conv_relu_chain("net.layers.", "net.layers."), "checkpoint"),
                       "3 units (net.layers.0 to net.layers.2)"));
  EXPECT_TRUE(has_note(rewritten(conv_relu_chain("Net_0.Block_", "Net_0.Block_"), "checkpoint"),
                       "3 units (Net_0.Block_0 to Net_0.Block_2)"));
}

TEST(CheckpointBlocks, AreNotContainersOfThem) {
  EXPECT_TRUE(
      has_note(rewritten(conv_relu_chain("Net_0.Sequential_0.Block_", "Net_0.Sequential_0.Block_"), "checkpoint"),
               "3 units (Net_0.Sequential_0.Block_0 to"));
}

TEST(CheckpointBlocks, SingleLayersInARowAreCutByDataflowInstead) {
  EXPECT_TRUE(has_note(rewritten(conv_relu_chain("Net_0.Sequential_0.Conv_", "Net_0.Sequential_0.GELU_"), "checkpoint"),
                       "3 units (segment 0 (aten::conv to aten::gelu) to segment 2 (aten::conv to aten::gelu))"));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
