// Are torchtune's options the policies that they name?
#include <gtest/gtest.h>

#include <set>

#include "tests/support/gpt_trace.h"
#include "tests/support/policy_plan.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/sample.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Trace eight_layers() {
  GptShape shape;
  shape.layers = 8;
  shape.hidden = 64;
  return gpt_step(shape);
}

Trace both(const Trace& step, const std::string& offload) {
  const Machine machine = test_machine();
  return apply_rewriters(step, {parse_policy("checkpoint"), parse_policy(offload)}, machine, *test_pricer(machine));
}

void expect_same_step(const Trace& a, const Trace& b) {
  ASSERT_EQ(a.ops.size(), b.ops.size());
  EXPECT_EQ(a.storages.size(), b.storages.size());
  EXPECT_EQ(producer_hashes(a), producer_hashes(b));
  EXPECT_EQ(simulated(a).end, simulated(b).end);
  EXPECT_EQ(simulated(a).tiers[0].peak_allocated, simulated(b).tiers[0].peak_allocated);
}

TEST(Torchtune, CheckpointingIsCheckpoint) {
  for (const Trace& step : {eight_layers(), sample_gpt_124m()})
    EXPECT_EQ(policy_plan(step, "torchtune"), policy_plan(step, "checkpoint"));
}

TEST(Torchtune, EveryNthBlockIsCheckpointOfTheseModules) {
  const Trace step = eight_layers();
  EXPECT_EQ(policy_plan(step, "torchtune:ac_option=3"), policy_plan(step, "checkpoint:modules=layers.2+layers.5"));
  EXPECT_EQ(policy_plan(step, "torchtune:ac_option=4"), policy_plan(step, "checkpoint:spread=even,layers=2"));
  EXPECT_NE(refusal(step, "torchtune:ac_option=9").find("has fewer than 9 blocks"), std::string::npos);
}

TEST(Torchtune, OffloadingSendsWhatIsStillKept) {
  const Trace step = eight_layers();
  const std::string offload = "offload:what=activations,min_bytes=1024";
  const Trace after = rewritten(step, "torchtune:enable_activation_offloading=1");
  expect_same_step(after, both(step, offload));
  EXPECT_TRUE(has_note(after, "the policies checkpoint, then " + offload));
  std::set<Bytes> sent;
  std::size_t copies = 0;
  for (const Op& op : after.ops) {
    if (op.kind != OpKind::copy || after.places[op.from] != "hbm") continue;
    ++copies;
    sent.insert(op.bytes);
  }
  EXPECT_EQ(copies, 5u) << "of 10, among them what 8 blocks start from: of the last 5 no later copy frees the memory";
  EXPECT_GE(*sent.begin(), 1024);
  expect_same_step(rewritten(step, "torchtune:enable_activation_offloading=1,activation_offloading_use_streams=0"),
                   both(step, offload + ",stream=compute"));
}

TEST(Torchtune, OptionsThatContradictEachOtherAreRefused) {
  const Trace step = eight_layers();
  EXPECT_NE(refusal(step, "torchtune:enable_activation_checkpointing=0").find("changes nothing"), std::string::npos);
  EXPECT_NE(refusal(step, "torchtune:enable_activation_checkpointing=0,enable_activation_offloading=1")
                .find("needs enable_activation_checkpointing=1"),
            std::string::npos);
  EXPECT_NE(refusal(step, "torchtune:activation_offloading_use_streams=0").find("has a meaning with"),
            std::string::npos);
}

TEST(Torchtune, OffloadingNeedsAHost) {
  Machine machine = test_machine();
  std::erase_if(machine.routes, [](const Route& route) { return route.from == 1 || route.to == 1; });
  const auto pricer = test_pricer(machine);
  EXPECT_THROW(
      apply_rewriters(eight_layers(), {parse_policy("torchtune:enable_activation_offloading=1")}, machine, *pricer),
      UsageError);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
