// Do stage 3's fetches do what DeepSpeed's do with use_all_reduce_for_fetch_params and module_granularity_threshold?
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/deepspeed_checks.h"
#include "tests/support/gpt_trace.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using namespace deepspeed_checks;

std::string bare(int ranks, const std::string& more) { return deepspeed(3, ranks, kBare + more); }

// One layer of a GPT of width 8, in elements: the embedding has 160, norms 16, attention 216 + 72, the network 288 +
// 264, the head 16 and the embedding's. Attention, network and head gather two parameters each, in forward and in
// backward: 2 x 1016 elements; the others one: 2 x 160 + 2 x 32.
GptShape one_layer() {
  GptShape shape;
  shape.layers = 1;
  return shape;
}

// ---- use_all_reduce_for_fetch_params ----

TEST(DeepSpeedAllReduceFetch, TwiceTheBytesOfGathersTravel) {
  const Trace trace = gpt_step(one_layer());
  const Trace gathered = rewritten(trace, bare(8, "")),
              reduced = rewritten(trace, bare(8, ",use_all_reduce_for_fetch_params=1"));
  expect_sound(reduced);
  const Bytes together = 2 * 2 * 1016, alone = 2 * (2 * 160 + 2 * 32);
  EXPECT_EQ(sent(gathered, CollectiveKind::all_gather), (together + alone) / 8 * 7);
  EXPECT_EQ(sent(gathered, CollectiveKind::all_reduce), 0);
  EXPECT_EQ(sent(reduced, CollectiveKind::all_gather), alone / 8 * 7);
  EXPECT_EQ(sent(reduced, CollectiveKind::all_reduce), 2 * (together / 8 * 7));
}

// The buffer is zeroed, the rank's own go in, and what comes out of the all-reduce are the parameters: no flat buffer
// beside them, nothing is copied out.
TEST(DeepSpeedAllReduceFetch, ParametersAreViewsOfTheBuffer) {
  const Trace t = rewritten(gpt_step(one_layer()), bare(8, ",use_all_reduce_for_fetch_params=1"));
  EXPECT_EQ(count_named(t, "zero"), 6u);
  EXPECT_EQ(count_named(t, "copy_partitions"), 6u);
  EXPECT_EQ(count_named(t, "materialize"), 0u);
  EXPECT_EQ(labelled(t, "flat_parameters"), -1);
  const std::vector<OpId> zeros = ops_named(t, "zero"), copies = ops_named(t, "copy_partitions");
  EXPECT_EQ(t.ops[zeros[0]].bytes, 2 * 288);           // attention
  EXPECT_EQ(t.ops[copies[0]].bytes, 2 * 2 * 288 / 8);  // read and written
  for (const OpId zero : zeros) {
    OpId reduce = zero;
    while (t.ops[reduce].kind != OpKind::collective) ++reduce;
    EXPECT_EQ(t.ops[reduce].collective, CollectiveKind::all_reduce);
  }
}

// Of five layers 0 and 1 are fetched together, and 1 stays for backward. While 2 runs, 0, which has been released,
// still takes its 2000 bytes.
TEST(DeepSpeedAllReduceFetch, TheBufferLivesUntilTheLastOfItsParametersIsReleased) {
  const Trace trace = layer_trace(layers(std::vector<Bytes>(5, 1000)));
  const std::string policy =
      deepspeed(3, 4, ",param_persistence_threshold=0,max_reuse_distance=0,prefetch_bucket_size=1001");
  const auto live_at_layer_2 = [&](const std::string& more) -> Bytes {
    const Trace t = rewritten(trace, policy + more);
    expect_sound(t);
    EXPECT_EQ(live_bytes(t, StorageKind::parameter).back(), 5 * 2 * 250);
    for (OpId id = 0; id < t.ops.size(); ++id)
      if (t.strings[t.ops[id].name] == "linear" && t.strings[t.ops[id].module] == "layers.2")
        return live_bytes(t, StorageKind::parameter)[id];
    return 0;
  };
  EXPECT_EQ(live_at_layer_2(",use_all_reduce_for_fetch_params=1"), live_at_layer_2("") + 2 * 1000);
}

// A parameter alone, sequential fetches, quantized weights and gathers from a secondary copy are gathered in any case.
TEST(DeepSpeedAllReduceFetch, WhatIsNotCoalescedIsGathered) {
  const Trace alone = layer_trace(layers({32'000, 64'000}));
  const Trace together = gpt_step(one_layer());
  const auto reduced = [&](const Trace& trace, int ranks, const std::string& more) {
    return sent(rewritten(trace, bare(ranks, ",use_all_reduce_for_fetch_params=1" + more)), CollectiveKind::all_reduce);
  };
  EXPECT_EQ(reduced(alone, 4, ""), 0);
  EXPECT_EQ(reduced(together, 8, ",allgather_sequential=1"), 0);
  EXPECT_EQ(reduced(together, 8, ",zero_quantized_weights=1"), 0);
  // Backward gathers within the node then: forward alone reduces, over 16 ranks.
  // Padded to 16 ranks attention has 304 elements, the network 560.
  EXPECT_EQ(reduced(together, 16, ",zero_hpz_partition_size=8"), 2 * (2 * (304 + 560 + 176) / 16 * 15));
}

TEST(DeepSpeedAllReduceFetch, CheckpointedLayersFindTheirParameters) {
  GptShape shape;
  shape.layers = 4;
  const Trace trace = gpt_step(shape);
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  for (const std::string checkpoint : {"checkpoint:mode=full", "checkpoint:every=2"}) {
    const Trace t =
        apply_rewriters(trace, {parse_policy(bare(4, ",use_all_reduce_for_fetch_params=1")), parse_policy(checkpoint)},
                        machine, *pricer);
    expect_sound(t);
    EXPECT_TRUE(simulated(t).fits);
  }
}

// ---- module_granularity_threshold ----

// Four layers of 1000 elements and the module around them, which is no container: 4000 / 5 = 800 each.
TEST(DeepSpeedLeafModules, AFineGrainedModuleIsGatheredWhole) {
  const Trace trace = layer_trace(layers({1000, 1000, 1000, 1000}));
  const auto order = [&](const std::string& threshold) {
    const Trace t = rewritten(trace, bare(4, ",module_granularity_threshold=" + threshold));
    expect_sound(t);
    return gathers_and_kernels(t);
  };
  const std::string apart = "g0 0 g1 1 g2 2 g3 3 g3 3 g2 2 g1 1 g0 0 ";
  EXPECT_EQ(order("0"), apart);
  EXPECT_EQ(order("799"), apart);
  EXPECT_EQ(order("800"), "g0123 0 1 2 3 g0123 3 2 1 0 ");
}

// Layers of a GPT: 16 + 288 + 16 + 552 elements in 4 modules and themselves, 872 / 5 = 174. The whole network, whose
// embedding has 8224, has 9984 / 13 = 768.
TEST(DeepSpeedLeafModules, LeavesAreTheFirstFineGrainedModulesFromTheRoot) {
  GptShape shape;
  shape.vocabulary = 1024;
  const Trace trace = gpt_step(shape);
  const auto gathers = [&](int threshold) {
    const Trace t = rewritten(trace, bare(8, ",module_granularity_threshold=" + std::to_string(threshold)));
    expect_sound(t);
    return std::pair(count_named(t, "all_gather"), count_named(t, "copy_partitions"));
  };
  // Embedding, per layer norm, attention, norm, network, then the head; backward all of them again.
  EXPECT_EQ(gathers(173), (std::pair<std::size_t, std::size_t>{2 * (2 * 4 + 2), 2 * (2 * 2 + 1)}));
  EXPECT_EQ(gathers(174), (std::pair<std::size_t, std::size_t>{2 * (2 + 2), 2 * (2 + 1)}));
  EXPECT_EQ(gathers(767), gathers(174));
  EXPECT_EQ(gathers(768), (std::pair<std::size_t, std::size_t>{2, 2}));
  const Trace t = rewritten(trace, bare(8, ",module_granularity_threshold=174"));
  EXPECT_TRUE(has_note(t, "2 modules are gathered whole"));
  EXPECT_TRUE(has_note(t, "has 174 elements"));
  EXPECT_TRUE(has_note(rewritten(trace, bare(8, ",module_granularity_threshold=1")), "0 modules are gathered whole"));
}

// Twice a leaf's bytes live while it is gathered; the host waits for no fetch of leaves.
TEST(DeepSpeedLeafModules, LeavesLiveAsAWholeAndHoldNobodyBack) {
  const Trace trace = layer_trace(layers(std::vector<Bytes>(4, 1000)));
  const auto waits = [](const Trace& t) {
    return std::ranges::count_if(
        t.ops, [](const Op& op) { return op.kind == OpKind::synchronize && op.wait_for == WaitFor::event; });
  };
  const Trace apart = rewritten(trace, bare(4, "")),
              whole = rewritten(trace, bare(4, ",module_granularity_threshold=800"));
  EXPECT_EQ(waits(apart), 8 - 3);
  EXPECT_EQ(waits(whole), 0);
  const std::vector<Bytes> parameters = live_bytes(whole, StorageKind::parameter);
  EXPECT_EQ(*std::ranges::max_element(parameters) - at_rest(whole, StorageKind::parameter), 2 * 4000);
  EXPECT_EQ(labelled(whole, "flat_parameters"), 2 * 4000);
}

TEST(DeepSpeedLeafModules, WithoutModulesThereAreNone) {
  LayerShape shape = layers({1000, 1000});
  shape.modules = false;
  const std::string threshold = ",module_granularity_threshold=1000000";
  const Trace t = rewritten(layer_trace(shape), bare(4, threshold));
  EXPECT_EQ(added_order(t), added_order(rewritten(layer_trace(shape), bare(4, ""))));
  EXPECT_TRUE(has_note(t, "module_granularity_threshold has no effect"));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
