// Do stages 0 to 2 of DeepSpeed hold, send and order what DeepSpeed's own code does?
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

// ---- 2.1: what is partitioned ----

TEST(DeepSpeed, StatesArePartitionedAndParametersAreNot) {
  const Trace trace = layer_trace(layers({100, 33, 67}));  // 200 elements over 8 ranks: padded to 208, 26 each
  for (const int stage : {1, 2}) {
    const Trace t = rewritten(trace, deepspeed(stage, 8));
    expect_sound(t);
    EXPECT_EQ(at_rest(t, StorageKind::optimizer_state), 12 * 26) << stage;
    EXPECT_EQ(at_rest(t, StorageKind::parameter), 2 * 208) << stage;
    EXPECT_EQ(at_rest(t, StorageKind::gradient), 0) << stage;
  }
  const Trace stage0 = rewritten(trace, deepspeed(0, 8));
  expect_sound(stage0);
  EXPECT_EQ(at_rest(stage0, StorageKind::optimizer_state), 12 * 200);
  EXPECT_EQ(at_rest(stage0, StorageKind::parameter), 2 * 200);
}

// DeepSpeed keeps an fp32 copy of its partition whatever the parameters' type.
TEST(DeepSpeed, ParametersInFp32HaveAnFp32CopyToo) {
  const Trace trace = in_fp32(layer_trace(layers({128, 128, 256})));
  constexpr Bytes P = 256, N = 8;
  for (const int stage : {1, 2, 3}) {
    const Trace t = rewritten(trace, deepspeed(stage, N, ",param_persistence_threshold=0"));
    expect_sound(t);
    EXPECT_EQ(at_rest(t, StorageKind::optimizer_state), 12 * P / N) << stage;
    EXPECT_TRUE(has_note(t, "keeps an fp32 copy")) << stage;
  }
}

TEST(DeepSpeed, ModelStatesOfSevenBillionParameters) {
  const Trace trace = gpt_step(seven_billion_gpt());
  constexpr Bytes P = 7'000'000'000, N = 8;
  const Trace t = rewritten(trace, deepspeed(1, N));
  EXPECT_EQ(at_rest(t, StorageKind::parameter), 2 * P);
  EXPECT_EQ(at_rest(t, StorageKind::optimizer_state), 12 * P / N);
}

// ---- 2.2 and 2.3: buffers ----

TEST(DeepSpeed, BucketBuffersAreOfTheirSizeHoweverSmallTheNetworkIs) {
  const Trace trace = layer_trace(layers({100, 100}));
  for (const int overlap : {0, 1}) {
    const Trace t = rewritten(trace, deepspeed(2, 4, ",overlap_comm=" + std::to_string(overlap)));
    Bytes most = 0;
    for (const Bytes bytes : live_bytes(t, StorageKind::communication_buffer)) most = std::max(most, bytes);
    EXPECT_EQ(labelled(t, "ipg_buffer"), 1'000'000'000);  // 5e8 elements of bf16
    // and the flat bucket while it is all-reduced
    EXPECT_EQ(most, (overlap + 1) * 1'000'000'000 + 2 * 200);
    EXPECT_EQ(live_bytes(t, StorageKind::communication_buffer).back(), 0);
  }
}

// Kernels of the program, and where a bucket buffer begins and ends among them, of two passes.
std::vector<std::string> around_buffers(const std::string& settings) {
  const Trace t = rewritten(layer_trace(layers({100, 100}, 2)), deepspeed(2, 4, settings));
  expect_sound(t);
  std::vector<std::string> events;
  for (const Op& op : t.ops) {
    if (op.kind == OpKind::kernel && !op.added) events.push_back(t.strings[op.name]);
    if ((op.kind == OpKind::alloc || op.kind == OpKind::free) &&
        t.strings[t.storages[op.target].label] == "deepspeed.ipg_buffer")
      events.push_back(op.kind == OpKind::alloc ? "alloc" : "free");
  }
  return events;
}

TEST(DeepSpeed, BuffersLiveFromTheFirstGradientToTheEndOfBackward) {
  const std::vector<std::string> pass{"linear", "linear",          "loss_backward", "linear_backward",
                                      "alloc",  "linear_backward", "free"};
  std::vector<std::string> expected = pass;
  expected.insert(expected.end(), pass.begin(), pass.end());
  EXPECT_EQ(around_buffers(""), expected);
}

TEST(DeepSpeed, BuffersOfOlderVersionsAreThereBeforeBackward) {
  const std::vector<std::string> pass{"linear",          "linear",          "alloc", "loss_backward",
                                      "linear_backward", "linear_backward", "free"};
  std::vector<std::string> expected = pass;
  expected.insert(expected.end(), pass.begin(), pass.end());
  EXPECT_EQ(around_buffers(",buckets_before_backward=1"), expected);
}

// ---- 2.3: the gradient path ----

// Layers of 40, 30, 30 elements, made in the order 30, 30, 40: a bucket of 64 takes two, then 40.
TEST(DeepSpeed, AGradientThatWouldNotFitClosesTheBucketFirst) {
  const Trace t = rewritten(layer_trace(layers({40, 30, 30})), deepspeed(2, 2, ",reduce_bucket_size=64"));
  expect_sound(t);
  EXPECT_EQ(count_named(t, "all_reduce"), 2u + 2);  // and the flag for overflow, and the norm
  std::vector<Bytes> messages;
  for (const Op& op : t.ops)
    if (is_named(t, op, "all_reduce")) messages.push_back(op.bytes);
  EXPECT_EQ(messages, (std::vector<Bytes>{2 * 60, 2 * 40, 0, 4}));  // 2 (N-1)/N of 120, 80, 1 and 4 bytes
}

TEST(DeepSpeed, AParameterLargerThanTheBucketGoesAloneAndUncopied) {
  const Trace t = rewritten(layer_trace(layers({10, 200, 10})), deepspeed(2, 2, ",reduce_bucket_size=64"));
  expect_sound(t);
  EXPECT_EQ(count_named(t, "copy_to_bucket"), 2u);
  std::vector<Bytes> messages;
  for (const Op& op : t.ops)
    if (is_named(t, op, "all_reduce")) messages.push_back(op.bytes);
  EXPECT_EQ(messages, (std::vector<Bytes>{20, 400, 20, 0, 4}));
}

// A bucket's path, in order, on the compute stream.
TEST(DeepSpeed, ABucketIsDividedFlattenedAllReducedAndItsOwnGradientsAreCopiedOut) {
  const Trace t = rewritten(layer_trace(layers({20, 20, 20, 20})), deepspeed(1, 2));
  const std::vector<std::string> expected{"copy_to_bucket",
                                          "copy_to_bucket",
                                          "copy_to_bucket",
                                          "copy_to_bucket",
                                          "divide",
                                          "flatten",
                                          "all_reduce",
                                          "copy_own_slices",
                                          "copy_to_partition",
                                          "copy_to_partition",
                                          "overflow",
                                          "all_reduce",
                                          "synchronize",
                                          "norm",
                                          "all_reduce",
                                          "synchronize",
                                          "flatten_gradients",
                                          "flatten_to_fp32",
                                          "unscale_and_clip",
                                          "optimizer",
                                          "cast",
                                          "all_gather"};
  EXPECT_EQ(added_order(t), expected);
  expect_sound(t);
}

TEST(DeepSpeed, RootedReducesGoToTheOwnerOfEachSlice) {
  const Trace trace = layer_trace(layers({20, 20, 20, 20}));
  const Trace t = rewritten(trace, deepspeed(2, 4, ",use_multi_rank_bucket_allreduce=0"));
  expect_sound(t);
  EXPECT_EQ(count_named(t, "reduce"), 4u);
  EXPECT_EQ(count_named(t, "all_reduce"), 2u);                   // of the flag for overflow, and the norm's
  EXPECT_EQ(sent(t, CollectiveKind::reduce), 4 * (40 / 4 * 3));  // each of 40 bytes: once, not twice, (N-1)/N
  EXPECT_EQ(sent(t, CollectiveKind::all_reduce), 0);
}

// Of 4 ranks pairs split the states: twice as much at rest, gathered in the pair, while gradients are summed over all.
TEST(DeepSpeed, StatesMaySplitWithinGroupsOfRanks) {
  const Trace trace = layer_trace(layers({20, 20, 20, 20}));
  const Trace all = rewritten(trace, deepspeed(1, 4)), pairs = rewritten(trace, deepspeed(1, 4, ",partition_ranks=2"));
  expect_sound(pairs);
  EXPECT_EQ(at_rest(pairs, StorageKind::optimizer_state), 2 * at_rest(all, StorageKind::optimizer_state));
  EXPECT_EQ(sent(pairs, CollectiveKind::all_reduce), sent(all, CollectiveKind::all_reduce));
  EXPECT_EQ(sent(all, CollectiveKind::all_gather), 160 / 4 * 3);
  EXPECT_EQ(sent(pairs, CollectiveKind::all_gather), 160 / 2);
  const std::vector<OpId> gathers = ops_named(pairs, "all_gather");
  ASSERT_EQ(gathers.size(), 1u);
  EXPECT_EQ(pairs.groups[pairs.ops[gathers[0]].group].members, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(added_order(rewritten(trace, deepspeed(1, 4, ",partition_ranks=4"))), added_order(all));
  EXPECT_NE(refusal(trace, deepspeed(1, 4, ",partition_ranks=3")).find("does not divide"), std::string::npos);
  EXPECT_NE(refusal(trace, deepspeed(2, 4, ",partition_ranks=2")).find("need stage=1"), std::string::npos);
}

// Two broadcasts in a group of two, of half the parameters each; of more ranks than parameters some have none.
TEST(DeepSpeed, PartitionsMayBeBroadcastRankByRank) {
  const Trace trace = layer_trace(layers({20, 20, 20, 20}));
  const Trace pairs = rewritten(trace, deepspeed(1, 4, ",partition_ranks=2,broadcast_partitions=1"));
  expect_sound(pairs);
  EXPECT_EQ(count_named(pairs, "broadcast"), 2u);
  EXPECT_EQ(count_named(pairs, "all_gather"), 0u);
  EXPECT_EQ(sent(pairs, CollectiveKind::broadcast), 160 / 2) << "the root has half of it already, on the mean of ranks";
  EXPECT_EQ(count_named(rewritten(trace, deepspeed(1, 8, ",broadcast_partitions=1")), "broadcast"), 4u);
}

TEST(DeepSpeed, WithoutReduceScatterABucketIsAllReducedInPlace) {
  const Trace t = rewritten(layer_trace(layers({20, 20, 20, 20})), deepspeed(2, 4, ",reduce_scatter=0"));
  expect_sound(t);
  EXPECT_EQ(count_named(t, "flatten"), 0u);
  EXPECT_EQ(sent(t, CollectiveKind::all_reduce), 2 * 160 / 4 * 3);
}

// The table of wire bytes: stage 1 3P, stage 2 (2 GA + 1) P, stage 0 2 P, times (N-1)/N.
TEST(DeepSpeed, BytesOnTheWire) {
  for (const int passes : {1, 3}) {
    const Trace trace = layer_trace(layers({512, 2048, 1024, 512}, passes));
    const Bytes P = 2 * 4096, N = 8, part = P / N * (N - 1);
    const Trace stage0 = rewritten(trace, deepspeed(0, N)), stage1 = rewritten(trace, deepspeed(1, N)),
                stage2 = rewritten(trace, deepspeed(2, N));
    EXPECT_EQ(sent(stage0, CollectiveKind::all_reduce), 2 * part);
    EXPECT_EQ(sent(stage0, CollectiveKind::all_gather), 0);
    EXPECT_EQ(sent(stage1, CollectiveKind::all_reduce), 2 * part);
    EXPECT_EQ(sent(stage1, CollectiveKind::all_gather), part);
    EXPECT_EQ(sent(stage2, CollectiveKind::all_reduce), 2 * part * passes);
    EXPECT_EQ(sent(stage2, CollectiveKind::all_gather), part);
    for (const Trace* t : {&stage0, &stage1, &stage2}) {
      expect_sound(*t);
      EXPECT_EQ(sent(*t, CollectiveKind::reduce_scatter), 0);
    }
  }
}

// Stage 1 without overlap_comm reduces behind backward, with it in the hooks of the last one; stage 2 in those of each.
TEST(DeepSpeed, WhenGradientsAreReduced) {
  const Trace trace = layer_trace(layers({20, 20}, 2));
  const auto copies_before_last_kernel_of_backward = [&](const std::string& policy) {
    const Trace t = rewritten(trace, policy);
    expect_sound(t);
    std::vector<std::size_t> by_pass{0, 0};
    std::size_t pass = 0, backward = 0, since = 0;
    for (const Op& op : t.ops) {
      if (is_named(t, op, "copy_to_bucket")) ++since;
      if (op.added || t.strings[op.name] != "linear_backward") continue;
      by_pass[pass] += since;
      since = 0;
      if (++backward % 2 == 0) ++pass;
    }
    return by_pass;
  };
  using Counts = std::vector<std::size_t>;
  EXPECT_EQ(copies_before_last_kernel_of_backward(deepspeed(1, 2)), (Counts{0, 0}));
  EXPECT_EQ(copies_before_last_kernel_of_backward(deepspeed(1, 2, ",overlap_comm=1")), (Counts{0, 1}));
  EXPECT_EQ(copies_before_last_kernel_of_backward(deepspeed(2, 2)), (Counts{1, 1 + 1}));
}

// Stage 1 keeps whole gradients until they are reduced behind backward; stage 2 drops each at its hook.
TEST(DeepSpeed, WholeGradientsThatLiveAtOnce) {
  const Trace trace = layer_trace(layers({64, 64, 64, 64}));
  const auto most = [&](const std::string& policy) {
    Bytes bytes = 0;
    const Trace t = rewritten(trace, policy);
    const std::vector<Bytes> live = live_bytes(t, StorageKind::gradient);
    for (OpId id = 0; id < t.ops.size(); ++id)
      if (t.ops[id].phase == Phase::backward) bytes = std::max(bytes, live[id]);
    return bytes;
  };
  // Two of four parameters are in the partition: 256 bytes of their gradients are copied out.
  EXPECT_EQ(most(deepspeed(1, 2)), 4 * 128);
  EXPECT_EQ(most(deepspeed(2, 2)), 256);
}

// Steps make gradients of their own: each is still of its parameter.
TEST(DeepSpeed, EveryStepCopiesTheSameGradientsOut) {
  const Trace t = rewritten(layer_trace(layers({64, 64, 64, 64}, 1, 3)), deepspeed(2, 2));
  expect_sound(t);
  for (const Storage& s : t.storages)
    if (t.strings[s.label] == "deepspeed.grads_in_partition") {
      EXPECT_EQ(s.bytes, 2 * 128);
    }
  EXPECT_EQ(count_named(t, "copy_to_partition"), 3u * 2);
}

// With two ranks and layers of 30 and 50 elements the partition boundary, at 40, cuts the second.
TEST(DeepSpeed, WholeGradientsOfTouchedParametersAreCopiedOut) {
  const Trace t = rewritten(layer_trace(layers({30, 50})), deepspeed(2, 2));
  EXPECT_EQ(labelled(t, "grads_in_partition"), 2 * 80);  // rank 0 touches both
  EXPECT_EQ(labelled(t, "fp32_flat_gradients"), 4 * 40);
}

TEST(DeepSpeed, AtMostOneReductionIsUnderWay) {
  LayerShape shape = layers(std::vector<Bytes>(6, 1'000'000));
  const Trace t = rewritten(layer_trace(shape), deepspeed(2, 2, ",overlap_comm=1,reduce_bucket_size=1000000"));
  expect_sound(t);
  const SimulationResult run = simulated(t);
  // 2 MB take 40 us on the wire (2 (N-1)/N = 1 of 2 MB at 100 GB/s: 20 us) and a layer 1 us: a copy into the bucket
  // never begins before the reduction before the last has ended.
  std::vector<Time> ends, copies;
  for (OpId id = 0; id < t.ops.size(); ++id) {
    if (is_named(t, t.ops[id], "all_reduce") && t.ops[id].bytes > 4) ends.push_back(run.records[id].end);
    if (is_named(t, t.ops[id], "copy_to_bucket")) copies.push_back(run.records[id].start);
  }
  ASSERT_EQ(ends.size(), 6u);
  ASSERT_EQ(copies.size(), 6u);
  bool overlaps = false;
  for (std::size_t i = 2; i < 6; ++i) {
    EXPECT_GE(copies[i], ends[i - 2]) << i;
    overlaps |= copies[i] < ends[i - 1];
  }
  EXPECT_TRUE(overlaps);
}

TEST(DeepSpeed, WithoutOverlapReductionsAreExposed) {
  const Trace trace = layer_trace(layers(std::vector<Bytes>(4, 1'000'000)));
  const auto end = [&](const std::string& more) { return simulated(rewritten(trace, deepspeed(2, 2, more))).end; };
  EXPECT_GT(end(",reduce_bucket_size=1000000"), end(",reduce_bucket_size=1000000,overlap_comm=1"));
}

TEST(DeepSpeed, OverlapEndsBackwardWithASynchronizeOfTheDevice) {
  const Trace trace = layer_trace(layers({20, 20}));
  const auto waits = [&](const std::string& more) {
    const Trace t = rewritten(trace, deepspeed(2, 2, more));
    return std::count_if(t.ops.begin(), t.ops.end(), [](const Op& op) {
      return op.kind == OpKind::synchronize && op.wait_for == WaitFor::device && op.phase == Phase::backward;
    });
  };
  EXPECT_EQ(waits(""), 0);
  EXPECT_EQ(waits(",overlap_comm=1"), 1);
}

// Own gradients in fp32 live through the update: 4 P / N.
TEST(DeepSpeed, TheStepFlattensOwnGradientsToFp32) {
  const Trace t = rewritten(layer_trace(layers({64, 64, 64, 64})), deepspeed(1, 4));
  EXPECT_EQ(labelled(t, "fp32_flat_gradients"), 4 * 64);
  const std::vector<Bytes> live = live_bytes(t, StorageKind::gradient);
  for (OpId id = 0; id < t.ops.size(); ++id)
    if (is_named(t, t.ops[id], "optimizer")) {
      EXPECT_EQ(live[id], 4 * 64);
    }
  EXPECT_EQ(live.back(), 0);
}

// DeepSpeed's own estimate of stage 2: 2 P + 18 P / N, when own gradients are there in 16 bit and in fp32; and 2 P / N
// of the flat 16-bit copy of which the fp32 ones are made.
TEST(DeepSpeed, TheMostThatModelStatesTakeInTheStep) {
  const Trace t = rewritten(layer_trace(layers({64, 64, 64, 64})), deepspeed(2, 4));
  const std::vector<LiveBytes> live = live_bytes(t);
  constexpr Bytes P = 256, N = 4;
  Bytes most = 0;
  for (OpId id = 0; id < t.ops.size(); ++id)
    if (t.ops[id].phase == Phase::optimizer) most = std::max(most, model_state(live[id]));
  EXPECT_EQ(most, 2 * P + 18 * P / N + 2 * P / N);
}

// One all-gather for the whole group, whatever allgather_bucket_size says, and compute waits for it.
TEST(DeepSpeed, UpdatedParametersAreGatheredAtOnce) {
  const Trace t = rewritten(layer_trace(layers({100, 33, 67}, 1, 2)), deepspeed(1, 8, ",allgather_bucket_size=10"));
  EXPECT_EQ(count_named(t, "all_gather"), 2u);
  EXPECT_EQ(sent(t, CollectiveKind::all_gather), 2 * (2 * 208 / 8 * 7));
  expect_sound(t);
}

TEST(DeepSpeed, TheUpdateTakesItsShareOfTheTime) {
  const Trace trace = layer_trace(layers(std::vector<Bytes>(4, 1'000'000)));  // four kernels of 1 us
  const Trace t = rewritten(trace, deepspeed(1, 4));
  for (const Op& op : t.ops)
    if (is_named(t, op, "optimizer")) {
      EXPECT_NEAR(to_seconds(op.duration), 1e-6, 1e-9);
    }
  EXPECT_EQ(count_named(t, "optimizer"), 1u);
}

TEST(DeepSpeed, StageZeroFlattensBehindBackward) {
  const Trace t = rewritten(layer_trace(layers({20, 20})), deepspeed(0, 2));
  EXPECT_EQ(added_order(t), (std::vector<std::string>{"flatten", "all_reduce", "divide", "unflatten"}));
  expect_sound(t);
}

TEST(DeepSpeed, HooksTakeHostTime) {
  const Trace trace = layer_trace(layers({20, 20, 20}));
  const Trace t = rewritten(trace, "deepspeed:stage=2,ranks=2,hook_us=7");
  Duration host{};
  for (const Op& op : t.ops)
    if (is_named(t, op, "hook")) host += op.host_cost;
  EXPECT_EQ(2 * host, microseconds((2 * 3 + 5) * 7)) << "three gradients, and their reduction";
  EXPECT_EQ(count_named(rewritten(trace, "deepspeed:stage=2,ranks=2,hook_us=0"), "hook"), 0u);
}

// ---- 2.4: ZeRO-Offload ----

TEST(DeepSpeedOffload, FourBytesGoDownAndTwoComeUpPerParameter) {
  const Trace t = rewritten(layer_trace(layers({64, 64, 64, 64})), deepspeed(2, 4, ",offload_optimizer=cpu"));
  expect_sound(t);
  const auto [down, up] = copied(t);
  EXPECT_EQ(down, 4 * 64);
  EXPECT_EQ(up, 2 * 64);
  EXPECT_EQ(at_rest(t, StorageKind::optimizer_state), 0);
  EXPECT_EQ(at_rest(t, StorageKind::optimizer_state, "host"), 12 * 64);
  EXPECT_EQ(at_rest(t, StorageKind::gradient, "host"), 4 * 64);
}

// With three micro-batches: the whole 16-bit gradient down, up and down, up; then the slice in fp32.
TEST(DeepSpeedOffload, MicroBatchesAccumulateOnTheHost) {
  const Trace t = rewritten(layer_trace(layers({64, 64, 64, 64}, 3)), deepspeed(2, 4, ",offload_optimizer=cpu"));
  expect_sound(t);
  const auto [down, up] = copied(t);
  EXPECT_EQ(down, 2 * 128 + 4 * 64);
  EXPECT_EQ(up, 2 * 128 + 2 * 64);
  EXPECT_EQ(count_named(t, "accumulate"), 2u);
  // In one place, whichever step it is.
  const Trace steps = rewritten(layer_trace(layers({64, 64, 64, 64}, 3, 2)), deepspeed(2, 4, ",offload_optimizer=cpu"));
  EXPECT_EQ(at_rest(steps, StorageKind::gradient, "host"), at_rest(t, StorageKind::gradient, "host"));
}

TEST(DeepSpeedOffload, TheGpuIsIdleWhileTheHostSteps) {
  const Trace t = rewritten(layer_trace(layers({64, 64, 64, 64}, 1, 2)), deepspeed(1, 4, ",offload_optimizer=cpu"));
  expect_sound(t);
  const SimulationResult run = simulated(t);
  for (OpId adam = 0; adam < t.ops.size(); ++adam) {
    if (!is_named(t, t.ops[adam], "cpu_adam")) continue;
    EXPECT_EQ(t.ops[adam].bytes, 28 * 64);
    for (OpId id = 0; id < t.ops.size(); ++id)
      if (runs_on_device(t.ops[id].kind)) {
        EXPECT_TRUE(run.records[id].end <= run.records[adam].host_start ||
                    run.records[id].start >= run.records[adam].host_end)
            << id;
      }
  }
  EXPECT_EQ(count_named(t, "cpu_adam"), 2u);
}

// The paper's option: the host updates with the last step's gradients while this step's are made, in other memory.
TEST(DeepSpeedOffload, DelayedUpdatesRunBesideTheStep) {
  LayerShape shape = layers(std::vector<Bytes>(4, 100'000), 1, 3);
  const Trace trace = layer_trace(shape);
  const std::string common = ",offload_optimizer=cpu";
  const Trace serial = rewritten(trace, deepspeed(2, 2, common)),
              beside = rewritten(trace, deepspeed(2, 2, common + ",delayed_parameter_update=1"));
  expect_sound(beside);
  EXPECT_EQ(copied(beside), copied(serial));
  EXPECT_EQ(at_rest(beside, StorageKind::gradient, "host"), 2 * at_rest(serial, StorageKind::gradient, "host"));
  const SimulationResult run = simulated(beside);
  EXPECT_LT(run.end, simulated(serial).end);
  // It begins with the gradients' scale.
  const std::vector<OpId> updates = ops_named(beside, "unscale_and_clip");
  ASSERT_EQ(updates.size(), 3u);
  std::vector<StorageId> read;
  for (const OpId update : updates) {
    for (const Use& use : beside.uses_of(beside.ops[update]))
      if (use.access == Access::read) read.push_back(use.storage);
    bool overlaps = false;
    for (OpId id = 0; id < beside.ops.size(); ++id)
      overlaps |= beside.strings[beside.ops[id].name] == "linear_backward" &&
                  run.records[id].start < run.records[update + 2].host_end &&  // behind scale and Adam: the cast
                  run.records[id].end > run.records[update].host_start;
    EXPECT_TRUE(overlaps);
  }
  ASSERT_EQ(read.size(), 3u);
  EXPECT_NE(read[0], read[1]);
  EXPECT_EQ(read[0], read[2]);
  // What it makes is sent when it is done.
  const std::vector<OpId> casts = ops_named(beside, "cast"), copies = ops_named(beside, "copy_to_device");
  ASSERT_EQ(casts.size(), 3u);
  ASSERT_EQ(copies.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_GE(run.records[copies[i]].start, run.records[casts[i]].host_end);
  EXPECT_NE(refusal(trace, deepspeed(3, 2, common + ",delayed_parameter_update=1")).find("stage 1 or 2"),
            std::string::npos);
}

// ---- defaults ----

// Source: deepspeed/runtime/zero/config.py, offload_config.py, deepspeed/runtime/swap_tensor/constants.py.
TEST(DeepSpeed, DefaultsAreDeepSpeeds) {
  const std::map<std::string, std::string> defaults{{"contiguous_gradients", "1"},
                                                    {"reduce_scatter", "1"},
                                                    {"reduce_bucket_size", "500000000"},
                                                    {"use_multi_rank_bucket_allreduce", "1"},
                                                    {"allgather_partitions", "1"},
                                                    {"allgather_bucket_size", "500000000"},
                                                    {"overlap_comm", "auto"},
                                                    {"sub_group_size", "1000000000"},
                                                    {"round_robin_gradients", "0"},
                                                    {"prefetch_bucket_size", "50000000"},
                                                    {"param_persistence_threshold", "100000"},
                                                    {"model_persistence_threshold", "unlimited"},
                                                    {"max_live_parameters", "1000000000"},
                                                    {"max_reuse_distance", "1000000000"},
                                                    {"module_granularity_threshold", "0"},
                                                    {"use_all_reduce_for_fetch_params", "0"},
                                                    {"allgather_sequential", "0"},
                                                    {"zero_hpz_partition_size", "1"},
                                                    {"zero_quantized_weights", "0"},
                                                    {"zero_quantized_gradients", "0"},
                                                    {"memory_efficient_linear", "1"},
                                                    {"offload_param", "none"},
                                                    {"offload_param_buffer_count", "5"},
                                                    {"buffer_size", "100000000"},
                                                    {"max_in_cpu", "1000000000"},
                                                    {"pin_memory", "1"},
                                                    {"offload_optimizer", "none"},
                                                    {"offload_optimizer_buffer_count", "4"},
                                                    {"pipeline_read", "0"},
                                                    {"pipeline_write", "0"},
                                                    {"ratio", "1"},
                                                    {"super_offload", "0"},
                                                    {"aio_block_size", "1MiB"},
                                                    {"aio_queue_depth", "8"},
                                                    {"aio_intra_op_parallelism", "1"},
                                                    {"aio_single_submit", "0"},
                                                    {"aio_overlap_events", "1"},
                                                    {"aio_use_gds", "0"}};
  std::map<std::string, std::string> found;
  for (const ParameterInfo& parameter : policy_named("deepspeed").parameters)
    if (defaults.contains(parameter.name)) found[parameter.name] = parameter.default_value;
  EXPECT_EQ(found, defaults);
  // Overlap is on in stage 3, and off before.
  const Trace trace = layer_trace(layers({20, 20}));
  const auto has_stream = [&](int stage) {
    const Trace t = rewritten(trace, deepspeed(stage, 2));
    return std::ranges::any_of(t.streams, [](const Stream& s) { return s.name == "deepspeed.reduction"; });
  };
  EXPECT_FALSE(has_stream(2));
  EXPECT_TRUE(has_stream(3));
}

// ---- refusals ----

TEST(DeepSpeed, RefusesWhatDeepSpeedRefuses) {
  const Trace trace = layer_trace(layers({20, 20}));
  const std::map<std::string, std::string> refusals{
      {"stage=0,ranks=2,offload_optimizer=cpu", "there is no partition to offload"},
      {"stage=2,ranks=2,offload_optimizer=nvme", "needs stage=3"},
      {"stage=2,ranks=2,offload_optimizer=cpu,offload_param=cpu", "offload_param needs stage=3"},
      {"stage=3,ranks=2,offload_param=cpu", "only available with optimizer state offload"},
      {"stage=2,ranks=2,offload_optimizer=cpu,ratio=0.5", "only supported for stage=3"},
      {"stage=2,ranks=2,zero_hpz_partition_size=2", "ZeRO++"},
      {"stage=3,ranks=6,zero_hpz_partition_size=4", "does not divide"}};
  for (const auto& [policy, reason] : refusals)
    EXPECT_NE(refusal(trace, "deepspeed:" + policy).find(reason), std::string::npos) << policy;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
