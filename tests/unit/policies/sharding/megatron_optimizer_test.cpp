// Does the distributed optimizer hold, send and order what Megatron-LM's does?
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "policies/sharding/megatron_optimizer_buffer.h"
#include "tests/support/deepspeed_checks.h"
#include "tests/support/gpt_trace.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using namespace deepspeed_checks;

std::string megatron(int ranks, const std::string& more = "") {
  return "megatron_optimizer:ranks=" + std::to_string(ranks) + more;
}

std::vector<OpId> ops_called(const Trace& t, const std::string& name) {
  std::vector<OpId> ops;
  for (OpId id = 0; id < t.ops.size(); ++id)
    if (t.strings[t.ops[id].name] == "megatron_optimizer." + name) ops.push_back(id);
  return ops;
}

// A of 100, B of 70, C of 200 elements over 4 ranks: C 0-200, B 256-326, A 384-484.
TEST(MegatronBuckets, AreLaidOutInReverseAndPadded) {
  const auto one = megatron_buckets({100, 70, 200}, 4, 0, false);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].end, 512);
  EXPECT_EQ(one[0].parameters, (std::vector<std::size_t>{2, 1, 0}));
  const auto two = megatron_buckets({100, 70, 200}, 4, 300, false);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].begin, 0);
  EXPECT_EQ(two[0].end, 384);
  EXPECT_EQ(two[1].begin, 384);
  EXPECT_EQ(two[1].end, 512);
  EXPECT_EQ(two[0].parameters, (std::vector<std::size_t>{2, 1}));
  EXPECT_EQ(megatron_buckets({100}, 4, 0, true)[0].end, 65536);
  EXPECT_EQ(megatron_buckets({100}, 6, 0, false)[0].end, 384);  // lcm(6, 128)
}

// 6 + 12/d bytes per bf16 parameter with fp32 gradients; 4 + 12/d with bf16 gradients.
TEST(MegatronOptimizer, BytesPerParameterAtRest) {
  const Trace trace = layer_trace(layers({5120, 10'240, 5120}));
  constexpr Bytes P = 20'480, d = 8;
  const auto states = [&](const Trace& t) {
    return at_rest(t, StorageKind::parameter) + at_rest(t, StorageKind::gradient) +
           at_rest(t, StorageKind::optimizer_state);
  };
  const Trace t = rewritten(trace, megatron(d));
  expect_sound(t);
  EXPECT_EQ(states(t), 6 * P + 12 * P / d);
  EXPECT_EQ(at_rest(t, StorageKind::gradient), 4 * P);
  const Trace half = rewritten(trace, megatron(d, ",grad_reduce_in_bf16=1"));
  expect_sound(half);
  EXPECT_EQ(states(half), 4 * P + 12 * P / d);
  const std::vector<Bytes> live = live_bytes(half, StorageKind::gradient);
  for (const OpId id : ops_called(half, "optimizer")) EXPECT_EQ(live[id], 2 * P + 4 * P / d);
}

// 8 + 8/d bytes per fp32 parameter.
TEST(MegatronOptimizer, WeightsInFp32AreTheirOwnMasterCopy) {
  const Trace t = rewritten(in_fp32(layer_trace(layers({10'240, 20'480, 10'240}))), megatron(8));
  expect_sound(t);
  constexpr Bytes P = 20'480;
  EXPECT_EQ(at_rest(t, StorageKind::parameter), 4 * P);
  EXPECT_EQ(at_rest(t, StorageKind::gradient), 4 * P);
  EXPECT_EQ(at_rest(t, StorageKind::optimizer_state), 8 * P / 8);
  EXPECT_TRUE(ops_called(t, "cast").empty());
}

// 4 P of gradients and 2 P of weights, times (d-1)/d, whatever the number of micro-batches.
TEST(MegatronOptimizer, VolumeDoesNotDependOnMicroBatches) {
  constexpr Bytes P = 20'480, d = 8;
  for (const int passes : {1, 3})
    for (const char* overlap : {"", ",overlap_grad_reduce=1,ddp_bucket_size=6000",
                                ",overlap_grad_reduce=1,overlap_param_gather=1,ddp_bucket_size=6000"}) {
      const Trace t = rewritten(layer_trace(layers({5120, 10'240, 5120}, passes)), megatron(d, overlap));
      expect_sound(t);
      Bytes scattered = 0, gathered = 0;
      for (const OpId id : ops_called(t, "reduce_scatter")) scattered += t.ops[id].bytes;
      for (const OpId id : ops_called(t, "all_gather")) gathered += t.ops[id].bytes;
      EXPECT_EQ(scattered, 4 * P / d * (d - 1));
      EXPECT_EQ(gathered, 2 * P / d * (d - 1));
    }
}

TEST(MegatronOptimizer, BucketsAreReducedDuringTheLastBackwardAlone) {
  const Trace trace = layer_trace(layers({5120, 5120, 5120}, 2));
  const auto order = [&](const std::string& more) {
    const Trace t = rewritten(trace, megatron(4, more));
    std::string text;
    for (const Op& op : t.ops) {
      if (t.strings[op.name] == "linear_backward") text += "b";
      if (t.strings[op.name] == "megatron_optimizer.reduce_scatter") text += "r";
      if (t.strings[op.name] == "megatron_optimizer.optimizer") text += "o";
      if (t.strings[op.name] == "megatron_optimizer.all_gather") text += "g";
    }
    return text;
  };
  EXPECT_EQ(order(""), "bbbbbbrog");
  EXPECT_EQ(order(",overlap_grad_reduce=1,ddp_bucket_size=5000"), "bbbbrbrbroggg");
  EXPECT_EQ(order(",overlap_grad_reduce=1"), "bbbbbbrog");  // a bucket of 40,000,000 elements takes them all
}

// The last bucket, of the first layers, at once; each further one when the one before has been waited for.
TEST(MegatronOptimizer, WeightsAreGatheredOneAheadInForward) {
  const Trace t = rewritten(layer_trace(layers({5120, 5120, 5120})),
                            megatron(4, ",overlap_grad_reduce=1,overlap_param_gather=1,ddp_bucket_size=5000"));
  expect_sound(t);
  std::string text;
  for (const Op& op : t.ops) {
    if (t.strings[op.name] == "megatron_optimizer.all_gather")
      text += "g" + t.strings[t.storages[t.uses_of(op).front().storage].label].substr(7) + " ";
    if (t.strings[op.name] == "linear") text += t.strings[op.module].substr(7) + " ";
  }
  EXPECT_EQ(text, "g0 g1 0 g2 1 2 ");
}

// Products add to the buffer themselves: 8 bytes per element instead of 2; norms and embeddings do not.
TEST(MegatronOptimizer, ProductsAddToTheBufferThemselves) {
  GptShape shape;
  const Trace trace = gpt_step(shape);
  const Trace fused = rewritten(trace, megatron(4)),
              apart = rewritten(trace, megatron(4, ",gradient_accumulation_fusion=0"));
  expect_sound(fused);
  expect_sound(apart);
  EXPECT_LT(ops_called(fused, "add_to_buffer").size(), ops_called(apart, "add_to_buffer").size());
  EXPECT_GT(ops_called(fused, "add_to_buffer").size(), 0u);
  const auto bytes_of_products = [](const Trace& t) {
    Bytes bytes = 0;
    for (const Op& op : t.ops)
      if (t.strings[op.name] == "mm_weight" && t.strings[op.module] == "layers.0.mlp") bytes += op.bytes;
    return bytes;
  };
  const Bytes h = shape.hidden, elements = 4 * h * (h + 1) + h * (4 * h + 1);
  EXPECT_EQ(bytes_of_products(fused) - bytes_of_products(trace), 6 * elements);
  EXPECT_EQ(bytes_of_products(apart), bytes_of_products(trace));
}

TEST(MegatronOptimizer, RefusesGathersAheadWithoutOverlappedReductions) {
  EXPECT_NE(
      refusal(layer_trace(layers({512})), megatron(2, ",overlap_param_gather=1")).find("needs overlap_grad_reduce"),
      std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
