// Do gradients stay where autograd put them without contiguous_gradients, and what does that cost?
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/deepspeed_checks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using namespace deepspeed_checks;
using Names = std::vector<std::string>;

constexpr const char* kUncopied = ",contiguous_gradients=0";

std::string uncopied(int stage, int ranks, const std::string& more = "") {
  return deepspeed(stage, ranks, kUncopied + more);
}

Names before_the_step(const Trace& t) {
  Names names = added_order(t);
  names.erase(std::ranges::find(names, "overflow"), names.end());
  return names;
}

Bytes most_in_backward(const Trace& t, StorageKind kind) {
  Bytes most = 0;
  const std::vector<Bytes> live = live_bytes(t, kind);
  for (OpId id = 0; id < t.ops.size(); ++id)
    if (t.ops[id].phase == Phase::backward) most = std::max(most, live[id]);
  return most;
}

// Two buckets of two gradients each, flattened and copied back.
TEST(DeepSpeedUncopied, ABucketIsFlattenedAllReducedAndCopiedBack) {
  const Trace trace = layer_trace(layers({20, 20, 20, 20}));
  const Names bucket{"flatten", "divide", "all_reduce", "unflatten"};
  Names expected = bucket;
  expected.insert(expected.end(), bucket.begin(), bucket.end());
  for (const int stage : {1, 2}) {
    const Trace t = rewritten(trace, uncopied(stage, 2, ",reduce_bucket_size=40"));
    expect_sound(t);
    EXPECT_EQ(before_the_step(t), expected) << stage;
    EXPECT_EQ(labelled(t, "flat_bucket"), 2 * 40);
    EXPECT_EQ(labelled(t, "ipg_buffer"), -1);
    EXPECT_EQ(labelled(t, "grads_in_partition"), -1);
  }
  // The host waits for the device before each bucket, and at the end.
  const Trace overlapped = rewritten(trace, uncopied(2, 2, ",reduce_bucket_size=40,overlap_comm=1"));
  expect_sound(overlapped);
  EXPECT_EQ(before_the_step(overlapped),
            (Names{"synchronize", "flatten", "divide", "all_reduce", "unflatten", "synchronize", "flatten", "divide",
                   "all_reduce", "unflatten", "synchronize"}));
}

TEST(DeepSpeedUncopied, OneGradientIsReducedInPlace) {
  const Trace t = rewritten(layer_trace(layers({10, 200, 10})), uncopied(2, 2, ",reduce_bucket_size=10"));
  expect_sound(t);
  Names expected;
  for (int i = 0; i < 3; ++i) expected.insert(expected.end(), {"divide", "all_reduce"});
  EXPECT_EQ(before_the_step(t), expected);
}

// 2 (N-1)/N of all gradients in every backward of stage 2, at the last one of stage 1, whatever else is asked for.
TEST(DeepSpeedUncopied, BucketsAreAlwaysAllReduced) {
  const Trace trace = layer_trace(layers({512, 2048, 1024, 512}, 3));
  const Bytes part = 2 * 4096 / 8 * 7;
  for (const std::string more : {"", ",reduce_scatter=0", ",use_multi_rank_bucket_allreduce=0"}) {
    const Trace one = rewritten(trace, uncopied(1, 8, more)), two = rewritten(trace, uncopied(2, 8, more));
    expect_sound(one);
    expect_sound(two);
    EXPECT_EQ(sent(one, CollectiveKind::all_reduce), 2 * part) << more;
    EXPECT_EQ(sent(two, CollectiveKind::all_reduce), 2 * part * 3) << more;
    EXPECT_EQ(sent(two, CollectiveKind::reduce), 0) << more;
    EXPECT_EQ(sent(two, CollectiveKind::all_gather), part) << more;
  }
}

// Four gradients of 128 bytes, of which the rank's partition touches those of layers 0 and 1, made last. A bucket of
// one gradient is sent when the next is there: two live at once, with overlap_comm three, since the one before is
// dropped behind the next wait. One bucket of all: four, and a flat copy of them instead of a buffer of 1 GB.
TEST(DeepSpeedUncopied, GradientsThatLiveAtOnce) {
  const Trace trace = layer_trace(layers({64, 64, 64, 64}));
  const auto most = [&](const std::string& more) {
    const Trace t = rewritten(trace, uncopied(2, 2, more));
    expect_sound(t);
    EXPECT_EQ(live_bytes(t, StorageKind::gradient).back(), 0);
    return std::pair(most_in_backward(t, StorageKind::gradient),
                     most_in_backward(t, StorageKind::communication_buffer));
  };
  EXPECT_EQ(most(",reduce_bucket_size=64"), std::pair(Bytes{2 * 128}, Bytes{0}));
  EXPECT_EQ(most(",reduce_bucket_size=64,overlap_comm=1"), std::pair(Bytes{3 * 128}, Bytes{0}));
  EXPECT_EQ(most(""), std::pair(Bytes{4 * 128}, Bytes{4 * 128}));
  const Trace copied = rewritten(trace, deepspeed(2, 2));
  EXPECT_EQ(most_in_backward(copied, StorageKind::gradient), 2 * 128);
  EXPECT_EQ(most_in_backward(copied, StorageKind::communication_buffer), 1'000'000'000 + 4 * 128);
}

// Stage 2 adds the rank's gradients of each pass to those before; stage 1 leaves that to autograd.
TEST(DeepSpeedUncopied, MicroBatchesAddUp) {
  const Trace trace = layer_trace(layers({64, 64, 64, 64}, 3));
  const Trace one = rewritten(trace, uncopied(1, 2)), two = rewritten(trace, uncopied(2, 2));
  expect_sound(one);
  expect_sound(two);
  EXPECT_EQ(count_named(one, "accumulate"), 0u);
  EXPECT_EQ(count_named(two, "accumulate"), 2u * 2);
  EXPECT_EQ(count_named(one, "all_reduce"), 1u + 2);
  EXPECT_EQ(count_named(two, "all_reduce"), 3u + 2);
}

// Six layers of 1 us whose gradients of 2 MB take 24 us each: 4 MB at 1 TB/s to divide, 2 MB at 100 GB/s. In turn they
// take 6 (1 + 24) us. With overlap_comm a layer hides behind a bucket, but the host waits for the device before the
// next one: of the first two layers no time is hidden.
TEST(DeepSpeedUncopied, OneReductionBehindCompute) {
  Trace trace = layer_trace(layers(std::vector<Bytes>(6, 1'000'000)));
  trace.constants.event_latency = Duration{};
  for (Op& op : trace.ops) op.bytes = 1;  // layers do not share HBM
  const auto took = [&](const std::string& more) {
    const Trace t = rewritten(trace, uncopied(2, 2, ",reduce_bucket_size=1000000" + more));
    expect_sound(t);
    const SimulationResult run = simulated(t);
    Time begin{}, end{};
    for (OpId id = 0; id < t.ops.size(); ++id) {
      if (t.strings[t.ops[id].name] == "linear_backward" && begin == Time{}) begin = run.records[id].start;
      if (t.ops[id].phase == Phase::backward && is_named(t, t.ops[id], "all_reduce")) end = run.records[id].end;
    }
    return end - begin;
  };
  EXPECT_EQ(took(""), microseconds(6 * (1 + 24)));
  EXPECT_NEAR(to_seconds(took(",overlap_comm=1")), (2 + 6 * 24) * 1e-6, 1e-11);
}

// Offloaded optimizers keep the buffers.
TEST(DeepSpeedUncopied, NotWithAnOffloadedOptimizer) {
  const Trace trace = layer_trace(layers({64, 64, 64, 64}));
  const std::string offload = ",offload_optimizer=cpu";
  EXPECT_EQ(added_order(rewritten(trace, uncopied(2, 4, offload))),
            added_order(rewritten(trace, deepspeed(2, 4, offload))));
}

// Stage 3 has no bucket buffer then, cuts each bucket from the gradients themselves, and scatters it in any case.
TEST(DeepSpeedUncopied, StageThreeCutsTheGradientsThemselves) {
  const Trace trace = layer_trace(layers({40, 30, 30}));
  const std::string bucket = ",reduce_bucket_size=64";
  const Trace copied = rewritten(trace, deepspeed(3, 2, bucket));
  for (const std::string more : {"", ",reduce_scatter=0"}) {
    const Trace t = rewritten(trace, uncopied(3, 2, bucket + more));
    expect_sound(t);
    EXPECT_EQ(labelled(t, "ipg_buffer"), -1);
    EXPECT_EQ(count_named(t, "copy_to_bucket"), 0u);
    EXPECT_EQ(sent(t, CollectiveKind::reduce_scatter), sent(copied, CollectiveKind::reduce_scatter));
    EXPECT_EQ(at_rest(copied, StorageKind::communication_buffer) - at_rest(t, StorageKind::communication_buffer),
              2 * 64);
    EXPECT_EQ(most_in_backward(t, StorageKind::gradient) - at_rest(t, StorageKind::gradient), 2 * (30 + 30 + 40));
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
