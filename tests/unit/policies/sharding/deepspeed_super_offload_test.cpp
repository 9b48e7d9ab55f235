// Does SuperOffload update each sub-group when DeepSpeed's does, and at what cost?
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/deepspeed_checks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using namespace deepspeed_checks;
using Names = std::vector<std::string>;

constexpr const char* kOffload =
    ",param_persistence_threshold=0,max_reuse_distance=0,prefetch_bucket_size=0,offload_optimizer=cpu";
constexpr const char* kSuper = ",super_offload=1";

// Four layers of 64 elements over four ranks: two sub-groups of two; each gradient is a bucket.
std::string small(const std::string& more) {
  return deepspeed(3, 4, kOffload + std::string(",sub_group_size=32,reduce_bucket_size=64") + more);
}

Names updates(const Trace& t) {
  Names found;
  for (const std::string& name : added_order(t))
    if (name == "copy_gradients" || name == "cpu_adam" || name == "copy_parameters" || name == "unscale_and_clip" ||
        name == "cast" || name == "norm")
      found.push_back(name);
  return found;
}

// Layers 3 and 2, the second sub-group, are complete first. In the step results are taken over, then each sub-group is
// scaled and cast, the first one first.
TEST(DeepSpeedSuperOffload, SubGroupsAreUpdatedAsTheyArriveTheLastOneFirst) {
  const Trace t = rewritten(layer_trace(layers({64, 64, 64, 64})), small(kSuper));
  expect_sound(t);
  EXPECT_EQ(updates(t), (Names{"copy_gradients", "cpu_adam", "copy_gradients", "cpu_adam", "copy_parameters", "norm",
                               "unscale_and_clip", "cast", "unscale_and_clip", "cast"}));
  // The first stands before the last layer of backward.
  const OpId first = ops_named(t, "cpu_adam").front();
  std::size_t left = 0;
  for (OpId id = first; id < t.ops.size(); ++id) left += t.strings[t.ops[id].name] == "linear_backward" ? 1 : 0;
  EXPECT_EQ(left, 1u) << "the bucket of layer 2 is sent once layer 1's gradient is there";
  EXPECT_NE(t.ops[first].thread, t.ops[ops_named(t, "cast").front()].thread);
}

// The bus carries what it carries without: 2 and 4 bytes of gradients down, 2 of parameters up. In host memory the
// worker copies gradients (8 bytes), the step results (8), besides 8 + 28 + 6.
TEST(DeepSpeedSuperOffload, BytesOnTheBusAndInHostMemory) {
  const Trace trace = layer_trace(layers({64, 64, 64, 64}));
  const Trace t = rewritten(trace, small(kSuper)), plain = rewritten(trace, small(""));
  EXPECT_EQ(copied(t), std::pair(Bytes{(2 + 4) * 64}, Bytes{2 * 64}));
  EXPECT_EQ(copied(t), copied(plain));
  const auto moved = [](const Trace& all) {
    Bytes bytes = 0;
    for (const Op& op : all.ops)
      if (op.kind == OpKind::host_work) bytes += op.bytes;
    return bytes;
  };
  EXPECT_EQ(moved(plain), (8 + 28 + 8) * 64) << "cast into new memory";
  EXPECT_EQ(moved(t), (8 + 8 + 8 + 28 + 8) * 64);
  EXPECT_EQ(labelled(t, "worker_gradients"), 4 * 32);  // of the largest sub-group
  EXPECT_EQ(at_rest(t, StorageKind::optimizer_state, "host"), 12 * 64);
  EXPECT_EQ(at_rest(t, StorageKind::gradient, "host") - at_rest(plain, StorageKind::gradient, "host"), 4 * 32);
}

// Clipping needs the norm: the worker updates in the step, and the host waits for it.
TEST(DeepSpeedSuperOffload, WithClippingNothingIsSpeculative) {
  const Trace t = rewritten(layer_trace(layers({64, 64, 64, 64})), small(std::string(kSuper) + ",gradient_clipping=1"));
  expect_sound(t);
  const Names group{"unscale_and_clip", "copy_gradients", "cpu_adam", "copy_parameters", "cast"};
  Names expected{"norm"};
  for (int i = 0; i < 2; ++i) expected.insert(expected.end(), group.begin(), group.end());
  EXPECT_EQ(updates(t), expected);
}

// With ratio=0.5 the first sub-group, whose gradients come last, steps on the GPU.
TEST(DeepSpeedSuperOffload, TheLastToArriveMayStepOnTheGpu) {
  const Trace t = rewritten(layer_trace(layers({64, 64, 64, 64})), small(std::string(kSuper) + ",ratio=0.5"));
  expect_sound(t);
  EXPECT_EQ(count_named(t, "cpu_adam"), 1u);
  EXPECT_EQ(count_named(t, "optimizer"), 1u);
  EXPECT_EQ(at_rest(t, StorageKind::optimizer_state, "host"), 12 * 32);
}

TEST(DeepSpeedSuperOffload, EveryStepAndOnlyItsLastMicroBatch) {
  const Trace t = rewritten(layer_trace(layers({64, 64, 64, 64}, 3, 2)), small(kSuper));
  expect_sound(t);
  EXPECT_EQ(count_named(t, "cpu_adam"), 2u * 2);
}

// Six layers of 8 million elements over two ranks, a sub-group and a bucket each, whose backward takes 3 ms, on a
// machine with a bus of 1 TB/s. In turn the host takes 8 + 28 + 6 bytes of DRAM at 100 GB/s for each of 4 million
// elements.
//
// The worker takes 8 + 28 of four layers while others are computed. Of the last two it begins the first once that
// bucket is there, not the one behind it (copied and divided: 64 MB at 1 TB/s; scattered: 8 MB at 100 GB/s; down in 16
// bit, cast, down in fp32: 8, 24 and 16 MB at 1 TB/s). The step takes over, scales and casts: 8 + 8 + 6. But before
// four layers the host waits for a bucket, and so the layer's parameters are gathered behind its way down, not beside.
TEST(DeepSpeedSuperOffload, WhatUpdatesBesideBackwardSave) {
  Trace trace = layer_trace(layers(std::vector<Bytes>(6, 8'000'000)));
  for (Op& op : trace.ops)
    if (trace.strings[op.name] == "linear_backward") {
      op.duration = microseconds(3000);
      op.bytes = 1;
    }
  Machine machine = test_machine();
  for (Link& link : machine.links)
    if (link.name.starts_with("pcie") || link.name == "host_dram") link.bandwidth = 1e12;
  for (Route& route : machine.routes)
    if (route.engine < 2) route.bandwidth = 1e12;
  const auto pricer = test_pricer(machine);
  const auto took = [&](const std::string& more) {
    const std::string policy =
        deepspeed(3, 2, kOffload + std::string(",sub_group_size=4000000,reduce_bucket_size=8000000") + more);
    const Trace t = apply_rewriters(trace, {parse_policy(policy)}, machine, *pricer);
    expect_sound(t);
    SimulationOptions options;
    options.allocator = "ideal";
    return to_seconds(simulate(t, machine, options).end - Time{});
  };
  const double own = 4e6, update = own * (8 + 28) / 100e9, down = 48e6 / 1e12,
               bucket = 64e6 / 1e12 + 8e6 / 100e9 + down;
  const double in_turn = 6 * own * (8 + 28 + 6) / 100e9,
               beside = 2 * update - bucket + 6 * own * (8 + 8 + 6) / 100e9 + 4 * down;
  EXPECT_NEAR(took("") - took(kSuper), in_turn - beside, 0.002 * in_turn);
}

TEST(DeepSpeedSuperOffload, NeedsStageThreeAndTheHost) {
  const Trace trace = layer_trace(layers({20, 20}));
  for (const char* policy : {"stage=2,ranks=2,offload_optimizer=cpu,super_offload=1", "stage=3,ranks=2,super_offload=1",
                             "stage=3,ranks=2,offload_optimizer=nvme,super_offload=1"})
    EXPECT_NE(refusal(trace, std::string("deepspeed:") + policy).find("super_offload needs stage=3"), std::string::npos)
        << policy;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
