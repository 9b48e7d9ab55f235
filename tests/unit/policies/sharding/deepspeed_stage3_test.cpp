// Does stage 3 of DeepSpeed fetch, keep, release, reduce and update what DeepSpeed's own code does, when it does?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/support/deepspeed_checks.h"
#include "tests/support/gpt_trace.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using namespace deepspeed_checks;

std::string stage3(int ranks, const std::string& more) { return deepspeed(3, ranks, more); }

// ---- 2.1 ----

TEST(DeepSpeedStage3, EachParameterIsPartitionedForItself) {
  // 13, 16 and 3 elements over 4 ranks: 4 + 4 + 1.
  const Trace t = rewritten(layer_trace(layers({13, 16, 3})), stage3(4, kBare));
  expect_sound(t);
  EXPECT_EQ(at_rest(t, StorageKind::parameter), 2 * 9);
  EXPECT_EQ(at_rest(t, StorageKind::gradient), 2 * 9);
  EXPECT_EQ(at_rest(t, StorageKind::optimizer_state), 12 * 9);
}

TEST(DeepSpeedStage3, ModelStatesOfSevenBillionParametersAreSixteenBytesByRanks) {
  const Trace t = rewritten(gpt_step(seven_billion_gpt()), stage3(8, kBare));
  const Bytes all =
      at_rest(t, StorageKind::parameter) + at_rest(t, StorageKind::gradient) + at_rest(t, StorageKind::optimizer_state);
  EXPECT_EQ(all, 16 * 7'000'000'000 / 8);
  EXPECT_EQ(at_rest(t, StorageKind::communication_buffer), 1'000'000'000);  // the bucket buffer
}

// ---- 2.3: volume ----

TEST(DeepSpeedStage3, ThreeTimesTheParametersTravelInEveryMicroBatch) {
  for (const int passes : {1, 3}) {
    const Trace t = rewritten(layer_trace(layers({512, 2048, 1024, 512}, passes)), stage3(8, kBare));
    expect_sound(t);
    const Bytes part = 2 * 4096 / 8 * 7;
    EXPECT_EQ(sent(t, CollectiveKind::all_gather), 2 * part * passes);
    EXPECT_EQ(sent(t, CollectiveKind::reduce_scatter), part * passes);
    EXPECT_EQ(sent(t, CollectiveKind::all_reduce), 0);
  }
}

// ---- 2.5: fetch, prefetch, release ----

TEST(DeepSpeedStage3, WithoutPrefetchEachModuleIsGatheredWhereItRuns) {
  const Trace t = rewritten(layer_trace(layers({1000, 1000, 1000})), stage3(4, kBare));
  EXPECT_EQ(gathers_and_kernels(t), "g0 0 g1 1 g2 2 g2 2 g1 1 g0 0 ");
}

// A prefetch takes parameters until it has the bucket's elements: of 1000 each, two for 1001. The module around the
// layers, which has none of its own, is the first to gather ahead, in forward and in backward.
TEST(DeepSpeedStage3, PrefetchStopsAtItsBucket) {
  const Trace trace = layer_trace(layers({1000, 1000, 1000, 1000}));
  const auto order = [&](const std::string& bucket) {
    return gathers_and_kernels(rewritten(
        trace, stage3(4, ",param_persistence_threshold=0,max_reuse_distance=0,prefetch_bucket_size=" + bucket)));
  };
  EXPECT_EQ(order("1000"), "g0 g1 0 g2 1 g3 2 g2 3 g1 g0 3 2 1 0 ");
  EXPECT_EQ(order("1"), order("1000"));  // the limit is checked before a parameter is added
  EXPECT_EQ(order("1001"), "g01 g23 0 g0 1 2 3 3 2 1 0 ");
}

TEST(DeepSpeedStage3, MostLiveParametersHoldPrefetchBackAndNothingElse) {
  const Trace trace = layer_trace(layers({1000, 1000, 1000}));
  const std::string prefetch = ",param_persistence_threshold=0,max_reuse_distance=0,prefetch_bucket_size=5000";
  const Trace t = rewritten(trace, stage3(4, prefetch + ",max_live_parameters=1000"));
  EXPECT_EQ(gathers_and_kernels(t), "g0 0 g1 1 g2 2 g2 2 g1 1 g0 0 ");
}

// Behind layer 2 of four, layers 3 and 3 (2000 elements) come before it is used again.
TEST(DeepSpeedStage3, WhatIsUsedAgainSoonIsKept) {
  const Trace trace = layer_trace(layers({1000, 1000, 1000, 1000}));
  const auto order = [&](int distance) {
    return gathers_and_kernels(
        rewritten(trace, stage3(4, ",param_persistence_threshold=0,prefetch_bucket_size=0,max_reuse_distance=" +
                                       std::to_string(distance))));
  };
  EXPECT_EQ(order(2001), "g0 0 g1 1 g2 2 g3 3 3 2 g1 1 g0 0 ");
  EXPECT_EQ(order(2000), "g0 0 g1 1 g2 2 g3 3 3 g2 2 g1 1 g0 0 ");
  EXPECT_EQ(order(1'000'000'000), "g0 0 g1 1 g2 2 g3 3 3 2 1 0 ");
}

TEST(DeepSpeedStage3, NothingIsKeptOverTheEndOfBackward) {
  const Trace t = rewritten(layer_trace(layers({1000, 1000}, 2, 2)), stage3(4, ",param_persistence_threshold=0"));
  expect_sound(t);
  const std::vector<Bytes> live = live_bytes(t, StorageKind::parameter);
  for (const OpId id : ops_named(t, "optimizer")) EXPECT_EQ(live[id], 2 * 500);
  EXPECT_EQ(live.back(), 2 * 500);
}

TEST(DeepSpeedStage3, SmallParametersStayAndAreGatheredOncePerStep) {
  const Trace trace = layer_trace(layers({1000, 10, 1000, 20}, 2));
  const Trace t =
      rewritten(trace, stage3(4, ",param_persistence_threshold=20,max_reuse_distance=0,prefetch_bucket_size=0"));
  expect_sound(t);
  EXPECT_EQ(at_rest(t, StorageKind::parameter), 2 * (250 + 3 + 250 + 5) + 2 * (10 + 20));
  EXPECT_EQ(gathers_and_kernels(t), "g0 0 1 g2 2 3 3 g2 2 1 g0 0 g0 0 1 g2 2 3 3 g2 2 1 g0 0 g1 g3 ");
  // At most so many elements of persistent parameters: the 10 fit, the 20 do not.
  const Trace few = rewritten(trace, stage3(4, ",param_persistence_threshold=20,model_persistence_threshold=15"));
  EXPECT_EQ(at_rest(few, StorageKind::parameter), 2 * (250 + 3 + 250 + 5) + 2 * 10);
}

// What one module needs comes in one all-gather, through a flat buffer: twice its bytes until it is waited for.
TEST(DeepSpeedStage3, AModulesParametersAreGatheredTogetherWithTwiceTheirBytes) {
  GptShape shape;
  shape.layers = 1;
  const Trace trace = gpt_step(shape);
  const Trace t = rewritten(trace, stage3(8, kBare));
  expect_sound(t);
  const Bytes h = shape.hidden, padded = 2 * 8 * (3 * h * (h + 1) / 8 + h * (h + 1) / 8);
  Bytes flat = 0;
  for (const OpId id : ops_named(t, "copy_partitions"))
    for (const Use& use : t.uses_of(t.ops[id]))
      if (use.access == Access::write && t.storages[use.storage].bytes == padded) flat = t.storages[use.storage].bytes;
  EXPECT_EQ(flat, padded);
  for (const OpId id : ops_named(t, "copy_partitions")) {
    const StorageId buffer = t.uses_of(t.ops[id]).back().storage;
    if (t.storages[buffer].bytes != padded) continue;
    Bytes whole = 0;
    OpId gather = id;
    while (t.ops[gather].kind != OpKind::collective) ++gather;
    for (const Use& use : t.uses_of(t.ops[gather]))
      if (use.access == Access::write) whole += t.storages[use.storage].bytes;
    EXPECT_EQ(whole, 2 * 4 * h * (h + 1));
    const std::vector<LiveBytes> live = live_bytes(t);
    EXPECT_GE(of(live[gather], StorageKind::parameter), whole + at_rest(t, StorageKind::parameter));
    EXPECT_EQ(of(live[gather], StorageKind::communication_buffer),
              padded + at_rest(t, StorageKind::communication_buffer));
  }
  const Trace one_by_one = rewritten(trace, stage3(8, std::string(kBare) + ",allgather_sequential=1"));
  expect_sound(one_by_one);
  EXPECT_EQ(count_named(one_by_one, "copy_partitions"), 0u);
  EXPECT_EQ(sent(one_by_one, CollectiveKind::all_gather), sent(t, CollectiveKind::all_gather));
  EXPECT_GT(count_named(one_by_one, "all_gather"), count_named(t, "all_gather"));
}

// At the fourth wait, and each that follows, the host waits for the third last.
TEST(DeepSpeedStage3, TheHostWaitsForTheThirdLastFetch) {
  const Trace t = rewritten(layer_trace(layers(std::vector<Bytes>(4, 1000))), stage3(4, kBare));
  std::size_t waits = 0;
  for (const Op& op : t.ops)
    if (op.kind == OpKind::synchronize && op.wait_for == WaitFor::event) ++waits;
  EXPECT_EQ(waits, 8u - 3);  // eight fetches, and no fourth bucket
}

// Six gathers of 4 us (400 kB of 800 at 100 GB/s), each layer 1 us. With overlap_comm the host, which runs ahead, has
// the next gather begin behind the last one in any case; without, a gather that is not ahead waits for the layer
// before.
TEST(DeepSpeedStage3, WhatOverlapsFollowsFromTheStreams) {
  Trace trace = layer_trace(layers(std::vector<Bytes>(6, 400'000)));
  trace.constants.event_latency = Duration{};
  const auto forward_end = [&](int overlap, int bucket) {
    const Trace t = rewritten(
        trace, stage3(2, ",param_persistence_threshold=0,max_reuse_distance=0,overlap_comm=" + std::to_string(overlap) +
                             ",prefetch_bucket_size=" + std::to_string(bucket)));
    expect_sound(t);
    const SimulationResult run = simulated(t);
    Time end{};
    for (OpId id = 0; id < t.ops.size(); ++id)
      if (t.strings[t.ops[id].name] == "linear") end = run.records[id].end;
    return end;
  };
  EXPECT_EQ(forward_end(1, 0), Time{} + microseconds(6 * 4 + 1));
  EXPECT_EQ(forward_end(1, 400'000), Time{} + microseconds(6 * 4 + 1));
  EXPECT_EQ(forward_end(0, 400'000), Time{} + microseconds(6 * 4 + 1));
  EXPECT_EQ(forward_end(0, 0), Time{} + microseconds(6 * (4 + 1)));
}

// Bare, the present call's. With a bucket of one, where backward begins: the last layer, which was passed over, and
// what it, the module around and the last hook of forward have gathered ahead. With overlap_comm what the two calls
// before had is not given back yet.
TEST(DeepSpeedStage3, GatheredParametersThatLiveAtOnce) {
  const Trace trace = layer_trace(layers(std::vector<Bytes>(10, 1000)));
  const auto most = [&](int overlap, int bucket) {
    const Trace t = rewritten(
        trace, stage3(4, ",param_persistence_threshold=0,max_reuse_distance=0,overlap_comm=" + std::to_string(overlap) +
                             ",prefetch_bucket_size=" + std::to_string(bucket)));
    const std::vector<Bytes> live = live_bytes(t, StorageKind::parameter);
    return *std::max_element(live.begin(), live.end()) - at_rest(t, StorageKind::parameter);
  };
  EXPECT_EQ(most(0, 0), 2 * 1000);
  EXPECT_EQ(most(0, 1000), 2 * 4000);
  EXPECT_EQ(most(1, 0), 2 * 1000);
  EXPECT_EQ(most(1, 1000), 2 * 4000);
}

// A released parameter's memory waits for the compute stream, a gradient's for the stream that copies it.
TEST(DeepSpeedStage3, MemoryComesBackWhenTheOtherStreamIsDone) {
  const Trace t = rewritten(layer_trace(layers({1000, 1000})), stage3(4, kBare));
  std::size_t parameters = 0, gradients = 0;
  for (const Op& op : t.ops) {
    if (op.kind != OpKind::free || op.wait_for != WaitFor::stream) continue;
    const bool is_parameter = t.storages[op.target].kind == StorageKind::parameter;
    EXPECT_EQ(t.streams[op.stream].name, is_parameter ? "compute" : "deepspeed.reduction");
    ++(is_parameter ? parameters : gradients);
  }
  EXPECT_EQ(parameters, 4u);
  EXPECT_EQ(gradients, 2u);
}

TEST(DeepSpeedStage3, HooksOfModulesAndParametersTakeHostTime) {
  const Trace trace = layer_trace(layers({1000, 1000, 1000}));
  const Trace t = rewritten(trace, "deepspeed:stage=3,ranks=4,hook_us=5");
  Duration host{};
  for (const OpId id : ops_named(t, "hook")) host += t.ops[id].host_cost;
  // Before and behind three calls of forward, half as long of three of backward; three gathers; three gradients; their
  // reduction.
  EXPECT_EQ(count_named(t, "all_gather"), 3u);
  EXPECT_EQ(host, microseconds(5) * (2 * 3 + 3 + 3 + 3 + (5 + 3)));
}

// A layer's re-run right before its backward shares a gather with it: 3 P. A re-run of several layers gathers once more
// for all but the last (4 P at most), unless the reuse distance spans what lies between.
TEST(DeepSpeedStage3, WithCheckpointingThreeToFourTimesTheParametersTravel) {
  GptShape shape;
  shape.layers = 4;
  const Trace trace = gpt_step(shape);
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  const auto gathered = [&](const std::string& checkpoint, const std::string& more) {
    std::vector<PolicySpec> specs{parse_policy(stage3(4, more))};
    if (!checkpoint.empty()) specs.push_back(parse_policy(checkpoint));
    Bytes bytes = 0;
    const Trace t = apply_rewriters(trace, specs, machine, *pricer);
    for (const OpId id : ops_named(t, "all_gather")) bytes += t.ops[id].bytes;
    return bytes;
  };
  const std::string none = kBare, all = ",param_persistence_threshold=0,prefetch_bucket_size=0";
  const Bytes twice = gathered("", none), h = shape.hidden;
  const Bytes layer = 2 * (12 * h * h + 13 * h) / 4 * 3;
  EXPECT_EQ(gathered("checkpoint:every=4", all), gathered("", all));
  EXPECT_GE(gathered("checkpoint:every=4", none), twice + 2 * layer);
  EXPECT_LE(gathered("checkpoint:every=4", none), twice + twice / 2);
}

// Without any one of the waits in forward, a layer would run before its parameters are there.
TEST(DeepSpeedStage3, EachWaitForAGatherIsNeeded) {
  const Trace t = rewritten(layer_trace(layers({1000, 1000, 1000})), stage3(4, kBare));
  std::size_t waits = 0;
  for (OpId id = 0; id < t.ops.size(); ++id) {
    const Op& op = t.ops[id];
    if (op.kind != OpKind::event_wait || op.phase != Phase::forward || t.streams[op.stream].name != "compute") continue;
    Trace faulty = t;
    faulty.ops[id].kind = OpKind::mark;
    EXPECT_NE(races(faulty), std::vector<std::string>{}) << "op " << id;
    ++waits;
  }
  EXPECT_EQ(waits, 3u);
}

// ---- 2.5: gradients ----

TEST(DeepSpeedStage3, ABucketIsCutByRankAndReduceScattered) {
  const Trace t = rewritten(layer_trace(layers({13, 16})), stage3(4, kBare));
  std::vector<std::string> names;
  for (const std::string& name : added_order(t))
    if (name != "all_gather" && name != "synchronize") names.push_back(name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"copy_to_bucket", "copy_to_bucket", "cut_by_rank", "divide", "reduce_scatter",
                                      "copy_to_partition", "copy_to_partition", "norm", "all_reduce", "flatten_gradients", "flatten_to_fp32",
                                      "unscale_and_clip", "optimizer", "cast"}));
  EXPECT_EQ(labelled(t, "cut_bucket"), 2 * (16 + 16));  // 13 padded to 4 * 4
  EXPECT_EQ(sent(t, CollectiveKind::reduce_scatter), 2 * 32 / 4 * 3);
}

TEST(DeepSpeedStage3, OneGradientThatDividesNeedsNoSecondBuffer) {
  const Trace t = rewritten(layer_trace(layers({16})), stage3(4, kBare));
  expect_sound(t);
  EXPECT_EQ(count_named(t, "cut_by_rank"), 0u);
  EXPECT_EQ(count_named(t, "reduce_scatter"), 1u);
}

TEST(DeepSpeedStage3, BucketsCloseBeforeTheyOverflowAndLargeGradientsAreNotCopied) {
  const Trace t =
      rewritten(layer_trace(layers({40, 200, 30, 30})), stage3(2, std::string(kBare) + ",reduce_bucket_size=64"));
  expect_sound(t);
  std::vector<Bytes> messages;
  for (const OpId id : ops_named(t, "reduce_scatter")) messages.push_back(t.ops[id].bytes);
  EXPECT_EQ(messages, (std::vector<Bytes>{60, 200, 40}));
  EXPECT_EQ(count_named(t, "copy_to_bucket"), 3u);
}

TEST(DeepSpeedStage3, WithoutReduceScatterBucketsAreAllReduced) {
  const Trace t = rewritten(layer_trace(layers({16, 16})), stage3(4, std::string(kBare) + ",reduce_scatter=0"));
  expect_sound(t);
  EXPECT_EQ(sent(t, CollectiveKind::reduce_scatter), 0);
  EXPECT_EQ(sent(t, CollectiveKind::all_reduce), 2 * 64 / 4 * 3);
}

TEST(DeepSpeedStage3, MicroBatchesAddToTheGradientBuffer) {
  const Trace t = rewritten(layer_trace(layers({16, 16}, 3)), stage3(4, kBare));
  expect_sound(t);
  EXPECT_EQ(count_named(t, "copy_to_partition"), 2u);
  EXPECT_EQ(count_named(t, "accumulate"), 4u);
}

TEST(DeepSpeedStage3, TheHostWaitsForTheThirdLastBucket) {
  const Trace trace = layer_trace(layers(std::vector<Bytes>(8, 64)));
  const auto waits = [&](const std::string& more) {
    const Trace t = rewritten(trace, stage3(2, ",param_persistence_threshold=64,reduce_bucket_size=" + more));
    expect_sound(t);
    return std::count_if(t.ops.begin(), t.ops.end(),
                         [](const Op& op) { return op.kind == OpKind::synchronize && op.wait_for == WaitFor::event; });
  };
  EXPECT_EQ(waits("64"), 8 - 3);
  EXPECT_EQ(waits("1000"), 0);
}

// ---- 2.5: step ----

TEST(DeepSpeedStage3, TheStepGoesBySubGroups) {
  const Trace trace = layer_trace(layers({64, 64, 64, 64}));
  const Trace t = rewritten(trace, stage3(4, std::string(kBare) + ",sub_group_size=32"));
  expect_sound(t);
  EXPECT_EQ(count_named(t, "optimizer"), 2u);
  const std::vector<Bytes> live = live_bytes(t, StorageKind::gradient);
  for (const OpId id : ops_named(t, "optimizer"))
    EXPECT_EQ(live[id], 2 * 64 + 4 * 32);  // the gradient buffer, and fp32 gradients of one sub-group
  EXPECT_EQ(count_named(rewritten(trace, stage3(4, kBare)), "optimizer"), 1u);
}

// ---- 2.4 and 2.6: offload ----

TEST(DeepSpeedStage3Offload, GradientsGoDownInSixteenBitsAndThirtyTwo) {
  const std::string policy = stage3(4, std::string(kBare) + ",offload_optimizer=cpu");
  const Trace t = rewritten(layer_trace(layers({64, 64, 64, 64})), policy);
  expect_sound(t);
  EXPECT_EQ(copied(t), std::pair(Bytes{(2 + 4) * 64}, Bytes{2 * 64}));
  EXPECT_EQ(at_rest(t, StorageKind::optimizer_state, "host"), 12 * 64);
  EXPECT_EQ(at_rest(t, StorageKind::gradient, "host"), (2 + 4) * 64);
  EXPECT_EQ(at_rest(t, StorageKind::gradient), 0);
  const Trace accumulated = rewritten(layer_trace(layers({64, 64, 64, 64}, 3)), policy);
  expect_sound(accumulated);
  EXPECT_EQ(copied(accumulated), std::pair(Bytes{(3 * 2 + 4) * 64}, Bytes{(2 * 2 + 2) * 64}));
}

// Of four sub-groups at ratio 0.5 the last two step on the host.
TEST(DeepSpeedStage3Offload, TwinFlowStepsTheLastSubGroupsOnTheHost) {
  const Trace t = rewritten(layer_trace(layers({64, 64, 64, 64})),
                            stage3(4, std::string(kBare) + ",offload_optimizer=cpu,ratio=0.5,sub_group_size=16"));
  expect_sound(t);
  std::vector<std::string> steps;
  for (const std::string& name : added_order(t))
    if (name == "optimizer" || name == "cpu_adam") steps.push_back(name);
  EXPECT_EQ(steps, (std::vector<std::string>{"optimizer", "optimizer", "cpu_adam", "cpu_adam"}));
  EXPECT_EQ(copied(t), std::pair(Bytes{2 * 64 + 4 * 32}, Bytes{2 * 32}));
  EXPECT_EQ(at_rest(t, StorageKind::optimizer_state, "host"), 12 * 32);
}

// The host waits for each partition's copy: 10,000 elements over 2 ranks are 10 kB, 1 us at 10 GB/s.
TEST(DeepSpeedStage3Offload, PartitionsOnTheHostComeOneByOneAndBlockIt) {
  const Trace t = rewritten(layer_trace(layers({10'000, 10'000})),
                            stage3(2, std::string(kBare) + ",offload_optimizer=cpu,offload_param=cpu"));
  expect_sound(t);
  EXPECT_EQ(at_rest(t, StorageKind::parameter), 0);
  EXPECT_EQ(at_rest(t, StorageKind::parameter, "host"), 2 * 10'000);
  const SimulationResult run = simulated(t);
  std::size_t blocking = 0;
  for (const OpId id : ops_named(t, "copy_to_device")) {
    EXPECT_EQ(t.ops[id].wait_for, WaitFor::own_op);
    EXPECT_GE(run.records[id].host_end, run.records[id].end);
    ++blocking;
  }
  EXPECT_EQ(blocking, 4u);  // two partitions, in forward and backward
}

// Four layers of 2 Mi elements over 2 ranks: partitions of 2 MiB. The first stays on the host, the rest are on NVMe.
TEST(DeepSpeedStage3Offload, PartitionsOnNvmeAreReadAheadIntoBuffers) {
  const Trace trace = layer_trace(layers(std::vector<Bytes>(4, 2 << 20)));
  const std::string common = std::string(kBare) + ",offload_optimizer=cpu,offload_param=nvme,max_in_cpu=1048576";
  const Trace t = rewritten(trace, stage3(2, common + ",offload_param_buffer_count=2,buffer_size=2000000"));
  expect_sound(t);
  EXPECT_EQ(at_rest(t, StorageKind::parameter, "nvme"), 3 * MiB(2));
  EXPECT_EQ(at_rest(t, StorageKind::parameter, "host"), MiB(2) + 3 * MiB(2));  // the first; what the step writes
  EXPECT_EQ(at_rest(t, StorageKind::workspace, "host"), 2 * 2 * 2'000'000);
  std::string order;
  Bytes written = 0;
  for (const Op& op : t.ops) {
    const std::string& name = t.strings[op.name];
    if (is_named(t, op, "read"))
      order += "r" + t.strings[t.storages[t.uses_of(op).front().storage].label].substr(7) + " ";
    if (is_named(t, op, "write")) written += op.bytes;
    if (name == "linear" || name == "linear_backward") order += t.strings[op.module].substr(7) + " ";
  }
  // One ahead; the last layer of forward is released, and read again, since nothing is to be kept.
  EXPECT_EQ(order, "r1 0 r2 1 r3 2 3 r3 r2 3 r1 2 1 0 ");
  EXPECT_EQ(written, 3 * MiB(2));
  EXPECT_NE(refusal(trace, stage3(2, common + ",buffer_size=1000")).find("do not hold a partition"), std::string::npos);
  // Kept parameters keep their buffers.
  EXPECT_NE(refusal(trace, stage3(2,
                                  ",param_persistence_threshold=0,offload_optimizer=cpu,offload_param=nvme,"
                                  "max_in_cpu=0,offload_param_buffer_count=2,buffer_size=2000000"))
                .find("not enough buffers"),
            std::string::npos);
  // Partitions below 1 MiB are not swapped.
  const Trace small = rewritten(layer_trace(layers({1000, 1000})), stage3(2, common));
  EXPECT_EQ(at_rest(small, StorageKind::parameter, "nvme"), 0);
}

// Sub-groups of 16,000 elements, whose gradients of 64 kB are too small to be swapped: they wait on the GPU.
TEST(DeepSpeedStage3Offload, StatesOnNvmeAreReadUpdatedAndWritten) {
  const Trace trace = layer_trace(layers({64'000, 64'000, 64'000, 64'000}));
  const std::string common = std::string(kBare) + ",offload_optimizer=nvme,sub_group_size=16000";
  const auto order = [&](const std::string& more) {
    const Trace t = rewritten(trace, stage3(4, common + more));
    expect_sound(t);
    Bytes read = 0, written = 0;
    for (const OpId id : ops_named(t, "read")) read += t.ops[id].bytes;
    for (const OpId id : ops_named(t, "write")) written += t.ops[id].bytes;
    EXPECT_EQ(read, 12 * 64'000);
    EXPECT_EQ(written, 12 * 64'000);
    EXPECT_EQ(copied(t), std::pair(Bytes{(2 + 4) * 64'000}, Bytes{2 * 64'000}));
    EXPECT_EQ(at_rest(t, StorageKind::gradient, "host"), 2 * 64'000);
    EXPECT_EQ(at_rest(t, StorageKind::gradient, "nvme"), 0);
    const std::vector<Bytes> live = live_bytes(t, StorageKind::gradient);
    EXPECT_EQ(live[ops_named(t, "norm").front()] - live.back(), 4 * 64'000);  // kept in fp32 until they are read
    std::string text;
    for (const std::string& name : added_order(t)) {
      if (name == "read") text += "r";
      if (name == "cpu_adam") text += "c";
      if (name == "write") text += "w";
    }
    return std::pair(text, simulated(t).end);
  };
  const auto serial = order("");
  const auto both = order(",pipeline_read=1,pipeline_write=1,offload_optimizer_buffer_count=12");
  EXPECT_EQ(serial.first, "rcwrcwrcwrcw");
  EXPECT_EQ(both.first, "rrcwrcwrcwcw");
  EXPECT_LT(both.second, serial.second);
  for (const std::string few :
       {",offload_optimizer_buffer_count=3", ",pipeline_read=1,offload_optimizer_buffer_count=7",
        ",pipeline_read=1,pipeline_write=1,offload_optimizer_buffer_count=11"})
    EXPECT_NE(refusal(trace, stage3(4, common + few)).find("ran out of swap buffers"), std::string::npos) << few;
}

// A write that is pipelined is waited for behind the next update, not before it: three sub-groups' buffers.
TEST(DeepSpeedStage3Offload, AWriteOverlapsTheNextUpdate) {
  const Trace trace = layer_trace(layers({2'000'000, 2'000'000, 2'000'000}));
  const std::string common = std::string(kBare) +
                             ",offload_optimizer=nvme,sub_group_size=1000000,"
                             "offload_optimizer_buffer_count=12,pipeline_write=1,pipeline_read=";
  for (const std::string reads : {"0", "1"}) {
    const Trace t = rewritten(trace, stage3(2, common + reads));
    expect_sound(t);
    const SimulationResult run = simulated(t);
    const std::vector<OpId> updates = ops_named(t, "cpu_adam"), writes = ops_named(t, "write");
    ASSERT_EQ(updates.size(), 3u);
    ASSERT_GE(writes.size(), 3u);
    for (std::size_t k = 0; k + 1 < updates.size(); ++k)
      EXPECT_LT(run.records[updates[k + 1]].host_start, run.records[writes[writes.size() - 3 + k]].end) << k;
  }
}

// Four layers of 2 Mi elements over 2 ranks: 4 MiB of fp32 gradients each, in buffers of two of them. ZeRO-Infinity
// counts 16 bytes a parameter to NVMe and 16 back.
TEST(DeepSpeedStage3Offload, GradientsGoToNvmeInFp32AndComeBackWithTheStates) {
  const Bytes elements = 2 << 20, own = 4 * elements / 2;
  const Trace trace = layer_trace(layers(std::vector<Bytes>(4, elements)));
  const std::string common = std::string(kBare) + ",offload_optimizer=nvme,sub_group_size=" + std::to_string(elements);
  const auto moved = [&](const Trace& t) {
    Bytes read = 0, written = 0;
    for (const OpId id : ops_named(t, "read")) read += t.ops[id].bytes;
    for (const OpId id : ops_named(t, "write")) written += t.ops[id].bytes;
    return std::pair(read, written);
  };
  const Trace t = rewritten(trace, stage3(2, common));
  expect_sound(t);
  EXPECT_EQ(moved(t), std::pair(16 * own, 16 * own));
  EXPECT_EQ(at_rest(t, StorageKind::gradient, "nvme"), 4 * own);
  EXPECT_EQ(at_rest(t, StorageKind::gradient, "host"), 2 * own);
  EXPECT_EQ(at_rest(t, StorageKind::workspace, "host"), 4 * 4 * elements);
  // Four gradients fill two of the four buffers: written one by one, and waited for where the step begins.
  EXPECT_EQ(count_named(t, "write"), 2u + 2u);
  // Two buffers hold them all only once one is free again; the host waits for both then.
  const Trace larger = rewritten(layer_trace(layers(std::vector<Bytes>(8, elements))),
                                 stage3(2, common + ",pipeline_read=1,offload_optimizer_buffer_count=8"));
  expect_sound(larger);
  EXPECT_EQ(moved(larger), std::pair(2 * 16 * own, 2 * 16 * own));
  // In three micro-batches they are written once.
  const Trace accumulated = rewritten(layer_trace(layers(std::vector<Bytes>(4, elements), 3)), stage3(2, common));
  expect_sound(accumulated);
  EXPECT_EQ(moved(accumulated), std::pair(16 * own, 16 * own));
  // Each of two steps waits for its own writes, and begins with empty buffers.
  const Trace twice = rewritten(layer_trace(layers(std::vector<Bytes>(4, elements), 1, 2)), stage3(2, common));
  expect_sound(twice);
  EXPECT_EQ(moved(twice), std::pair(2 * 16 * own, 2 * 16 * own));
  EXPECT_EQ(count_named(twice, "write"), 2 * count_named(t, "write"));
}

TEST(DeepSpeedStage3Offload, WithoutTheFlatBufferTheHostKeepsNoGradients) {
  const Trace trace = layer_trace(layers({64, 64, 64, 64}));
  const std::string common = std::string(kBare) + ",grad_partitions_flat_buffer=0";
  const Trace t = rewritten(trace, stage3(4, common + ",offload_optimizer=cpu"));
  expect_sound(t);
  EXPECT_EQ(copied(t), std::pair(Bytes{4 * 64}, Bytes{2 * 64}));
  EXPECT_EQ(at_rest(t, StorageKind::gradient, "host"), 4 * 64);
  EXPECT_NE(refusal(trace, stage3(4, common)).find("needs stage=3 and offload_optimizer"), std::string::npos);
  EXPECT_NE(refusal(layer_trace(layers({64, 64}, 2)), stage3(4, common + ",offload_optimizer=cpu"))
                .find("several micro-batches"),
            std::string::npos);
}

TEST(DeepSpeedStage3Offload, ABulkSynchronousQueueIsSlower) {
  Machine machine = test_machine();
  for (Route& route : machine.routes)
    if (route.engine == 3 || route.engine == 4) route.latency = microseconds(100);
  const auto pricer = test_pricer(machine);
  const Trace trace = layer_trace(layers({4'000'000}));
  const auto read = [&](const std::string& more) {
    const Trace t = apply_rewriters(
        trace, {parse_policy(stage3(2, std::string(kBare) + ",offload_optimizer=nvme" + more))}, machine, *pricer);
    return t.ops[ops_named(t, "read").front()].duration;
  };
  // 24 MB at 4 GB/s and 100 us; three batches of 8 MiB wait 100 us each besides.
  EXPECT_EQ(read(""), microseconds(6000) + microseconds(100));
  EXPECT_EQ(read(",aio_overlap_events=0"), microseconds(6000) + microseconds(100 + 3 * 100));
  EXPECT_EQ(read(",aio_queue_depth=1,aio_block_size=64KiB"), microseconds(100) * 367);  // one request at a time
}

// ---- 2.8: ZeRO++ ----

TEST(DeepSpeedZeroPlusPlus, QuantizedWeightsTravelInInt8WithAScalePerGroup) {
  const Trace trace = layer_trace(layers({32'000, 64'000}));
  const Trace t = rewritten(trace, stage3(4, std::string(kBare) + ",zero_quantized_weights=1"));
  expect_sound(t);
  // Partitions of 8000 and 16000 elements: one and two scales of 4 bytes.
  EXPECT_EQ(sent(t, CollectiveKind::all_gather), 2 * 3 * (8000 + 4 + 16'000 + 8));
  EXPECT_EQ(count_named(t, "quantize"), 4u);
  EXPECT_EQ(count_named(t, "dequantize"), 4u);
}

TEST(DeepSpeedZeroPlusPlus, BackwardGathersWithinTheNode) {
  const Trace trace = layer_trace(layers({1600, 3200}));
  const Trace t = rewritten(trace, stage3(16, std::string(kBare) + ",zero_hpz_partition_size=8"));
  expect_sound(t);
  std::map<std::uint16_t, Bytes> by_group;
  for (const OpId id : ops_named(t, "all_gather")) by_group[t.ops[id].group] += t.ops[id].bytes;
  ASSERT_EQ(by_group.size(), 2u);
  std::map<std::uint32_t, Bytes> by_ranks;
  for (const auto& [group, bytes] : by_group) by_ranks[t.groups[group].ranks] = bytes;
  EXPECT_EQ(by_ranks[16], 2 * 4800 / 16 * 15);  // forward
  EXPECT_EQ(by_ranks[8], 2 * 4800 / 8 * 7);     // backward
  EXPECT_EQ(at_rest(t, StorageKind::parameter), 2 * 4800 / 16 + 2 * 4800 / 8);
  EXPECT_EQ(count_named(t, "cut_secondary"), 2u);
}

TEST(DeepSpeedZeroPlusPlus, QuantizedGradientsTakeTwoAllToAlls) {
  const Trace trace = layer_trace(layers({1600, 3200}));
  const Trace t = rewritten(trace, stage3(16, std::string(kBare) + ",zero_quantized_gradients=1"));
  expect_sound(t);
  // 4800 elements of half a byte within nodes of 8, an eighth of that between the two nodes.
  EXPECT_EQ(sent(t, CollectiveKind::all_to_all), 2400 / 8 * 7 + 300 / 2);
  EXPECT_EQ(sent(t, CollectiveKind::reduce_scatter), 0);
  // On one node, and of what does not divide by 2 N: a reduce-scatter.
  const Trace one_node = rewritten(trace, stage3(8, std::string(kBare) + ",zero_quantized_gradients=1"));
  EXPECT_EQ(sent(one_node, CollectiveKind::all_to_all), 0);
  const Trace uneven =
      rewritten(layer_trace(layers({1600, 3210})), stage3(16, std::string(kBare) + ",zero_quantized_gradients=1"));
  EXPECT_EQ(sent(uneven, CollectiveKind::all_to_all), 0);
}

// ---- with other policies ----

TEST(DeepSpeedStage3, CheckpointedLayersFindTheirParameters) {
  GptShape shape;
  shape.layers = 4;
  shape.steps = 2;
  const Trace trace = gpt_step(shape);
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  for (const std::string more : {"", kBare, ",param_persistence_threshold=0,max_reuse_distance=1000"})
    for (const std::string checkpoint : {"checkpoint:mode=full", "checkpoint:every=2"}) {
      SCOPED_TRACE(more + " " + checkpoint);
      const Trace t =
          apply_rewriters(trace, {parse_policy(stage3(4, more)), parse_policy(checkpoint)}, machine, *pricer);
      expect_sound(t);
      EXPECT_TRUE(simulated(t).fits);
    }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
