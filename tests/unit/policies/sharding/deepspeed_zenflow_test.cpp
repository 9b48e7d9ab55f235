// Does ZenFlow update, send and keep what DeepSpeed's does, when it does?
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/deepspeed_checks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using namespace deepspeed_checks;
using Names = std::vector<std::string>;

// Layers whose weights all have this shape.
Trace shaped(int count, const Shape& shape, int passes, int steps = 1) {
  Bytes elements = 1;
  for (const std::int64_t size : shape) elements *= size;
  Trace t = layer_trace(layers(std::vector<Bytes>(static_cast<std::size_t>(count), elements), passes, steps));
  for (Storage& s : t.storages)
    if (s.kind == StorageKind::parameter) s.shape = t.shapes.intern(shape);
  return t;
}

std::string zenflow(int stage, int interval, const std::string& more = "") {
  return deepspeed(stage, 2,
                   ",offload_optimizer=cpu,zenflow=1,zenflow_topk_ratio=0.2,zenflow_update_interval=" +
                       std::to_string(interval) + more);
}

// Two layers of 8 x 10, one owned by each of two ranks, in two micro-batches. Of 10 columns 2 are selected: 16 elements
// of each layer.
Trace two_layers(int steps = 1) { return shaped(2, {8, 10}, 2, steps); }

Names only(const Names& names, const Names& kept) {
  Names found;
  for (const std::string& name : names)
    if (std::ranges::find(kept, name) != kept.end()) found.push_back(name);
  return found;
}

// Of one bucket: transposed into it, all-reduced; the owner's selected columns are taken and broadcast, layer 1's
// first, and updated at once, but in the last micro-batch put aside; then the whole gradient goes to the host.
TEST(DeepSpeedZenFlow, SelectedColumnsAreUpdatedAfterEveryMicroBatch) {
  for (const int stage : {1, 2}) {
    const Trace t = rewritten(two_layers(), zenflow(stage, 2));
    expect_sound(t);
    const Names bucket{"transpose",     "copy_to_bucket", "transpose",  "copy_to_bucket",
                       "divide",        "flatten",        "all_reduce", "copy_own_slices",
                       "take_selected", "broadcast",      "broadcast",  "copy_selected"};
    Names expected = bucket;
    for (const char* name : {"gather_selected", "selective_adam", "scatter_selected", "copy_to_host"})
      expected.push_back(name);
    expected.insert(expected.end(), bucket.begin(), bucket.end());
    for (const char* name : {"put_aside",      "copy_to_device",
                             "accumulate",     "norm",
                             "cast_to_fp32",   "copy_to_host",
                             "overflow",       "all_reduce",
                             "synchronize",    "norm",
                             "all_reduce",     "synchronize",
                             "synchronize",    "unscale_and_clip",
                             "cpu_adam",       "cast",
                             "copy_to_device", "all_gather",
                             "put_back",       "gather_selected",
                             "selective_adam", "scatter_selected"})
      expected.push_back(name);
    EXPECT_EQ(added_order(t), expected) << stage;
  }
}

// Beside all-reduce and gather each owner broadcasts 16 elements of 2 bytes in each of two micro-batches. What crosses
// the bus is what crosses it without ZenFlow: 160 bytes down, back and, as fp32, 320 down; 160 of parameters up.
TEST(DeepSpeedZenFlow, BytesOnTheWireAndOnTheBus) {
  const Trace t = rewritten(two_layers(), zenflow(2, 2)),
              plain = rewritten(two_layers(), deepspeed(2, 2, ",offload_optimizer=cpu"));
  EXPECT_EQ(sent(t, CollectiveKind::broadcast), 2 * 2 * (32 / 2));
  EXPECT_EQ(sent(t, CollectiveKind::all_reduce), 2 * 320);
  EXPECT_EQ(sent(t, CollectiveKind::all_gather), 320 / 2);
  EXPECT_EQ(copied(t), std::pair(Bytes{160 + 320}, Bytes{160 + 160}));
  EXPECT_EQ(copied(t), copied(plain));
  EXPECT_EQ(sent(t, CollectiveKind::all_reduce), sent(plain, CollectiveKind::all_reduce));
}

// Two moments of 2 bytes for 32 selected elements, on every rank; the gradients in a buffer and behind it; in the step
// they and the parameters that were put aside.
TEST(DeepSpeedZenFlow, MemoryOfSelectedColumns) {
  const Trace t = rewritten(two_layers(), zenflow(2, 2));
  EXPECT_EQ(at_rest(t, StorageKind::optimizer_state), 2 * 2 * 32);
  EXPECT_EQ(at_rest(t, StorageKind::optimizer_state, "host"), 12 * 80);
  EXPECT_EQ(labelled(t, "selected_gradient_buffer"), 2 * 32);
  EXPECT_EQ(labelled(t, "selected_gradients"), 2 * 32);
  const std::vector<Bytes> parameters = live_bytes(t, StorageKind::parameter),
                           gradients = live_bytes(t, StorageKind::gradient);
  const OpId update = ops_named(t, "cpu_adam").front();
  EXPECT_EQ(parameters[update] - parameters.back(), 2 * 32);
  EXPECT_EQ(gradients[update] - gradients.back(), 2 * 32);
  EXPECT_EQ(parameters.back(), at_rest(t, StorageKind::parameter) + at_rest(t, StorageKind::parameter, "host"));
  EXPECT_EQ(gradients.back(), at_rest(t, StorageKind::gradient, "host"));
}

// The selective update moves 14 bytes per selected element: parameter, gradient and moments read, all but the gradient
// written, 2 bytes each.
TEST(DeepSpeedZenFlow, TheSelectiveUpdateMovesFourteenBytesPerElement) {
  const Trace t = rewritten(two_layers(), zenflow(2, 2));
  for (const OpId id : ops_named(t, "selective_adam")) EXPECT_EQ(t.ops[id].bytes, 14 * 32);
  EXPECT_EQ(count_named(t, "selective_adam"), 2u);
}

TEST(DeepSpeedZenFlow, ColumnsThatPartitionsCutAreNobodys) {
  // One layer of 8 x 10 over four ranks: 20 elements each, columns 0 and 1; 3 and 4 (of 24 to 40); 5 and 6 (40 to 56);
  // 8 and 9. Columns 2 and 7 are cut.
  Trace trace = shaped(1, {8, 10}, 1);
  const Trace t =
      rewritten(trace,
                "deepspeed:stage=2,ranks=4,hook_us=0,offload_optimizer=cpu,zenflow=1,zenflow_topk_ratio=0.2,"
                "zenflow_update_interval=1");
  expect_sound(t);
  EXPECT_EQ(labelled(t, "selected_gradients"), 2 * 4 * 8);  // one column of each rank, at least
  EXPECT_EQ(count_named(t, "broadcast"), 4u);
}

TEST(DeepSpeedZenFlow, VectorsAreUpdatedWhole) {
  const Trace t = rewritten(shaped(2, {80}, 1), zenflow(2, 1));
  expect_sound(t);
  EXPECT_EQ(labelled(t, "selected_gradients"), 2 * 160);
  EXPECT_EQ(count_named(t, "transpose"), 0u);
  EXPECT_EQ(sent(t, CollectiveKind::broadcast), 2 * (160 / 2));
  EXPECT_NE(refusal(shaped(2, {2, 4, 10}, 1), zenflow(2, 1)).find("of one and of two dimensions"), std::string::npos);
}

// Every select_interval micro-batches: the rank's parameters come down before backward, moments are cleared, and owners
// broadcast 2 indices of 4 bytes each.
TEST(DeepSpeedZenFlow, ColumnsAreChosenAnew) {
  const Names kept{"sync_fp32_parameters", "clear_moments", "choose_columns", "cpu_adam"};
  const auto order = [&](const std::string& interval) {
    const Trace t =
        rewritten(two_layers(2), zenflow(2, 2, ",zenflow_select_strategy=step,zenflow_select_interval=" + interval));
    expect_sound(t);
    return only(added_order(t), kept);
  };
  const Names chosen{"sync_fp32_parameters", "clear_moments", "choose_columns", "cpu_adam"};
  Names twice = chosen, once{"cpu_adam"};
  twice.insert(twice.end(), chosen.begin(), chosen.end());
  once.insert(once.end(), chosen.begin(), chosen.end());
  EXPECT_EQ(order("2"), twice);
  EXPECT_EQ(order("4"), once);
  EXPECT_EQ(order("1000"), (Names{"cpu_adam", "cpu_adam"}));
  const Trace t = rewritten(two_layers(), zenflow(2, 2, ",zenflow_select_strategy=step,zenflow_select_interval=2"));
  EXPECT_EQ(sent(t, CollectiveKind::broadcast), 2 * 2 * (32 / 2) + 2 * (8 / 2));
  EXPECT_EQ(copied(t).first, 160 + 320 + 160);
}

// With zenflow_offload the moments are the host's: 128 bytes up and down around each of two updates; what is put aside,
// 64 bytes, goes down and up as well.
TEST(DeepSpeedZenFlow, MomentsMayLiveOnTheHost) {
  const Trace t = rewritten(two_layers(), zenflow(2, 2, ",overlap_comm=1,zenflow_offload=1"));
  expect_sound(t);
  EXPECT_EQ(at_rest(t, StorageKind::optimizer_state), 0);
  EXPECT_EQ(at_rest(t, StorageKind::optimizer_state, "host"), 12 * 80 + 2 * 2 * 32);
  EXPECT_EQ(copied(t), std::pair(Bytes{160 + 320 + 2 * 128 + 64}, Bytes{160 + 160 + 2 * 128 + 64}));
}

// A process updates beside the next step: two gradient buffers, two pairs of moments, a copy of the parameters.
TEST(DeepSpeedZenFlow, OverlappedUpdatesHaveTheirOwnMemory) {
  const Trace t = rewritten(two_layers(3), zenflow(2, 2, ",zenflow_overlap_step=1"));
  expect_sound(t);
  EXPECT_EQ(at_rest(t, StorageKind::optimizer_state, "host"), (12 + 8) * 80);
  EXPECT_EQ(at_rest(t, StorageKind::gradient, "host"), 2 * 4 * 80 + 2 * 80);  // and the accumulator
  EXPECT_EQ(labelled(t, "stale_parameters"), 4 * 80);
  // Each update reads what the step before has made.
  std::vector<StorageId> read;
  for (const OpId update : ops_named(t, "cpu_adam"))
    for (const Use& use : t.uses_of(t.ops[update]))
      if (t.storages[use.storage].kind == StorageKind::gradient) read.push_back(use.storage);
  ASSERT_EQ(read.size(), 3u);
  EXPECT_NE(read[0], read[1]);
  EXPECT_EQ(read[0], read[2]);
  const Names order = only(added_order(t), {"cpu_adam", "copy_parameters", "cast", "unscale_and_clip", "all_gather"});
  EXPECT_EQ(Names(order.begin(), order.begin() + 5),
            (Names{"cpu_adam", "copy_parameters", "cast", "all_gather", "unscale_and_clip"}));
}

// Four layers of 1000 x 1000 in eight micro-batches, over two ranks: 2 million elements each. In turn the host takes 8
// + 28 + 6 bytes of DRAM per element at 100 GB/s and 2 bytes over the bus at 10 GB/s. Beside the next step, which is
// longer than that, 28 + 8 of these are hidden, 8 (into new memory) + 8 are left, and parameters come as a pageable
// copy at 5 GB/s. While the host then scales gradients the GPU gathers (4 MB at 100 GB/s).
TEST(DeepSpeedZenFlow, WhatAnOverlappedUpdateSaves) {
  const auto end = [](int steps, const std::string& more) {
    const Trace t = rewritten(shaped(4, {1000, 1000}, 8, steps), zenflow(2, 8, more));
    expect_sound(t);
    return to_seconds(simulated(t).end - Time{});
  };
  const auto step_time = [&](const std::string& more) { return end(3, more) - end(2, more); };
  const double own = 2e6, in_turn = own * (8 + 28 + 6) / 100e9 + own * 2 / 10e9,
               left = own * (8 + 8) / 100e9 + own * 2 / 5e9, gather = 4e6 / 100e9;
  EXPECT_NEAR(step_time("") - step_time(",zenflow_overlap_step=1"), in_turn - left + gather, 0.01 * in_turn);
}

TEST(DeepSpeedZenFlow, RefusesWhatDeepSpeedRefuses) {
  const Trace trace = two_layers();
  const auto refused = [&](const std::string& policy) { return refusal(trace, policy); };
  const auto expect = [&](const std::string& policy, const std::string& reason) {
    EXPECT_NE(refused(policy).find(reason), std::string::npos) << refused(policy);
  };
  expect(deepspeed(2, 2, ",zenflow=1,zenflow_update_interval=2"), "must be used with cpu offload");
  expect(deepspeed(2, 2, ",zenflow=1,offload_optimizer=cpu"), "depends on the values of gradients");
  expect(deepspeed(3, 2, ",zenflow=1,offload_optimizer=cpu,zenflow_update_interval=2"), "stage=3 is not implemented");
  expect(zenflow(2, 4), "the step has 2 before an update; expected accumulation=4");
  expect(zenflow(2, 2, ",zenflow_offload=1"), "used with overlap_comm");
  expect(zenflow(2, 2, ",zenflow_select_strategy=step"), "to be a number");
  expect(zenflow(2, 2, ",zenflow_select_interval=8"), "chooses zenflow_select_interval itself");
  expect(zenflow(2, 2, ",zenflow_select_strategy=step,zenflow_select_interval=1"), "greater than or equal");
  expect(zenflow(2, 2, ",zenflow_select_strategy=step,zenflow_select_interval=3"), "no multiple");
  expect(zenflow(2, 2, ",reduce_scatter=0"), "fails in DeepSpeed");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
