// Are segments computed again once or layer by layer, as l_peak says, and do only outputs of convolutions leave?
#include <gtest/gtest.h>

#include "tests/support/gpt_trace.h"
#include "tests/support/races.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kSlab = 32 << 20;  // a segment of the allocator by itself; 3.4 ms on a link of 10 GB/s

// Blocks of a convolution and three cheap layers, and a convolution behind them. Backward of a cheap layer reads what
// it read and made; that of a convolution reads what it read. `gradient`: slabs that each backward op makes and gives
// back.
Trace conv_net(std::size_t blocks, Bytes gradient) {
  StepProgram p;
  std::vector<OpId> convolutions;
  std::vector<StorageId> made;
  Op slow;
  slow.duration = microseconds(20'000);
  StorageId x = p.preexisting(kSlab, StorageKind::input, "x");
  for (std::size_t i = 0; i <= 4 * blocks; ++i) {
    const StorageId y = p.make(kSlab, "y");
    const OpId id = p.op(i % 4 == 0 ? "conv2d" : "relu", {x}, {y}, slow);
    if (i % 4 == 0) convolutions.push_back(id);
    made.push_back(x = y);
  }
  p.op("loss", {x}, {}, slow);
  p.backward();
  for (std::size_t i = made.size(); i-- > 0;) {
    if (i % 4 == 0) p.drop(made[i]);
    const StorageId gradients = p.make(gradient, "gradients");
    std::vector<StorageId> reads;
    if (i > 0) reads.push_back(made[i - 1]);
    if (i % 4 != 0) reads.push_back(made[i]);
    p.op("back", reads, {gradients}, slow);
    p.drop(gradients);
    if (i % 4 != 0) p.drop(made[i]);
  }
  p.optimizer();
  p.op("update", {}, {});
  Trace t = std::move(p).finish();
  t.constants.event_latency = {};
  for (const OpId id : convolutions) t.ops[id].operator_class = OperatorClass::convolution;
  return t;
}

std::size_t copies_out(const Trace& t) {
  return static_cast<std::size_t>(std::ranges::count_if(
      t.ops, [&](const Op& op) { return op.kind == OpKind::copy && t.places[op.from] == "hbm"; }));
}

std::string within(Bytes slabs) { return ",budget=" + std::to_string(slabs * kSlab); }

// Backward of a layer touches two slabs and its gradient: with one slab of it l_peak is 3, as much as a segment takes.
TEST(SuperNeurons, ASegmentNoLargerThanLPeakRunsAgainOnce) {
  const Trace step = conv_net(4, kSlab);
  const Trace after = rewritten(step, "superneurons:offload=none" + within(10));
  EXPECT_EQ(count(after, Phase::recompute), 12u) << "three layers of four blocks";
  // Four outputs of convolutions, a segment, and the gradient.
  EXPECT_EQ(activation_peak(after), (4 + 3 + 1) * kSlab);
  EXPECT_EQ(activation_peak(step), (16 + 1) * kSlab);
  expect_same_contents(step, after);
  EXPECT_EQ(races(after), std::vector<std::string>{});
}

// With gradients of half a slab l_peak is 2.5: the third layer is made again from the first on, then the second, then
// the first: 3 + 2 + 1 ops.
TEST(SuperNeurons, ALargerSegmentRunsAgainForEachLayer) {
  const Trace step = conv_net(4, kSlab / 2);
  const Trace by_layer = rewritten(step, "superneurons:offload=none" + within(9));
  const Trace once = rewritten(step, "superneurons:offload=none,recompute=speed" + within(9));
  EXPECT_EQ(count(by_layer, Phase::recompute), 4u * (3 + 2 + 1));
  EXPECT_EQ(count(once, Phase::recompute), 12u);
  // While the second is made from the first, the third is there, and no gradient; and never is more of a segment.
  EXPECT_EQ(activation_peak(by_layer), (4 + 3) * kSlab);
  EXPECT_EQ(activation_peak(once), (4 + 3) * kSlab + kSlab / 2);
  expect_same_contents(step, by_layer);
  EXPECT_EQ(races(by_layer), std::vector<std::string>{});
}

TEST(SuperNeurons, OutputsOfConvolutionsLeaveTheOldestFirstAndNoMoreThanNeeded) {
  const Trace step = conv_net(6, kSlab);
  EXPECT_EQ(copies_out(rewritten(step, "superneurons:recompute=cost" + within(12))), 0u);
  const Trace two = rewritten(step, "superneurons:recompute=cost" + within(9));
  EXPECT_GT(copies_out(two), 0u);
  EXPECT_LT(copies_out(two), 6u);
  EXPECT_FALSE(has_note(two, "no plan was found"));
  EXPECT_EQ(races(two), std::vector<std::string>{});
  OpId first = kNoOp;
  for (OpId id = 0; id < two.ops.size() && first == kNoOp; ++id)
    if (two.ops[id].kind == OpKind::copy) first = id;
  std::size_t convolutions = 0;
  for (OpId id = 0; id < first; ++id) convolutions += two.ops[id].operator_class == OperatorClass::convolution ? 1 : 0;
  EXPECT_EQ(convolutions, 1u) << "what the first has made leaves first";
  EXPECT_EQ(copies_out(rewritten(step, "superneurons:offload=none" + within(9))), 0u);
}

TEST(SuperNeurons, LeavesWhatFitsAndSaysWhatItLacks) {
  const Trace step = conv_net(4, kSlab);
  EXPECT_EQ(count(rewritten(step, "superneurons" + std::string(":budget=4GB")), Phase::recompute), 0u);
  EXPECT_TRUE(has_note(rewritten(step, "superneurons:min_bytes=0" + within(2)), "no plan was found"));
  Machine machine = test_machine();
  std::erase_if(machine.routes, [&](const Route& route) {
    return route.to == machine.tier("host") || route.from == machine.tier("host");
  });
  const auto pricer = test_pricer(machine);
  EXPECT_THROW(apply_rewriters(step, {parse_policy("superneurons:min_bytes=0" + within(9))}, machine, *pricer),
               UsageError);
  EXPECT_NO_THROW(apply_rewriters(step, {parse_policy("superneurons:offload=none" + within(10))}, machine, *pricer));
}

// Outputs of a transformer's blocks are sums of products that are gone: they stay, and no product runs again.
TEST(SuperNeurons, RunsNoLayerAgainThatComputesMuch) {
  const Trace step =
      gpt_step({.layers = 4, .hidden = 512, .heads = 8, .sequence = 512, .batch = 4, .vocabulary = 4096});
  const Trace after = rewritten(step, "superneurons:offload=none,budget=100MiB");
  ASSERT_GT(count(after, Phase::recompute), 0u);
  for (const Op& op : after.ops)
    EXPECT_FALSE(op.phase == Phase::recompute &&
                 (op.operator_class == OperatorClass::gemm || op.operator_class == OperatorClass::attention));
  expect_same_contents(step, after);
}

TEST(SuperNeurons, KeepsToItsBudgetOnAGpt) {
  const Trace step =
      gpt_step({.layers = 8, .hidden = 512, .heads = 8, .sequence = 512, .batch = 4, .vocabulary = 4096});
  Machine machine = test_machine();
  const Bytes all = simulate(step, machine, {}).tiers.front().peak_reserved;
  for (const int percent : {90, 70}) {
    const Bytes budget = all * percent / 100;
    const Trace after = rewritten(step, "superneurons:offload=dense,budget=" + std::to_string(budget));
    ASSERT_FALSE(has_note(after, "no plan was found")) << percent;
    EXPECT_GT(count(after, Phase::recompute), 0u);
    machine.tiers.front().capacity = budget;
    EXPECT_TRUE(simulate(after, machine, {}).fits) << percent;
    EXPECT_EQ(races(after), std::vector<std::string>{});
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
