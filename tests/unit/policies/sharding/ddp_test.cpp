// Does ddp do what DistributedDataParallel does: which buckets, when they leave, what is copied and what is held?
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/layer_trace.h"
#include "tests/support/live_bytes.h"
#include "tests/support/races.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Trace reduced(const Trace& trace, const std::string& more = "", int ranks = 4) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  return apply_rewriters(trace, {parse_policy("ddp:ranks=" + std::to_string(ranks) + more)}, machine, *pricer);
}

std::vector<Bytes> messages(const Trace& trace, Bytes ranks) {
  std::vector<Bytes> bytes;
  for (const Op& op : trace.ops)
    if (op.collective == CollectiveKind::all_reduce) bytes.push_back(op.bytes / 2 * ranks / (ranks - 1));
  return bytes;
}

std::size_t kernels(const Trace& trace, const std::string& name) {
  std::size_t n = 0;
  for (const Op& op : trace.ops) n += trace.strings[op.name] == name ? op.kernels : 0;
  return n;
}

Bytes most(const Trace& trace) {
  Bytes bytes = 0;
  for (const LiveBytes& live : live_bytes(trace))
    bytes = std::max(bytes, of(live, StorageKind::gradient) + of(live, StorageKind::communication_buffer));
  return bytes;
}

// 30 gradients of 1 MiB, as they are ready: the first bucket has one, the next 25, the last what is left.
TEST(Ddp, TheFirstBucketIsSmallTheOthers25MiB) {
  LayerShape shape;
  shape.parameter_bytes.assign(30, MiB(1));
  const Trace trace = layer_trace(shape);
  EXPECT_EQ(messages(reduced(trace), 4), (std::vector<Bytes>{MiB(1), MiB(25), MiB(4)}));
  // A size that is asked for is that of the first one, too.
  EXPECT_EQ(messages(reduced(trace, ",bucket_cap=10MiB"), 4), (std::vector<Bytes>{MiB(10), MiB(10), MiB(10)}));
  EXPECT_EQ(messages(reduced(trace, ",bucket_cap=25MiB"), 4), (std::vector<Bytes>{MiB(25), MiB(5)}));
  // The last layer's gradient is ready first: 2 MiB close the first bucket.
  shape.parameter_bytes = {MiB(3), MiB(24), MiB(2), MiB(2)};
  EXPECT_EQ(messages(reduced(layer_trace(shape)), 4), (std::vector<Bytes>{MiB(2), MiB(26), MiB(3)}));
}

// The bias of a linear layer is there before its weight, though its kernel comes after.
TEST(Ddp, ABiasGoesBeforeItsWeight) {
  LayerShape shape;
  shape.parameter_bytes = {4096, 1024};
  Trace trace = layer_trace(shape);
  // The two layers' gradients as those of one node: first the weight's (1024 bytes here), then the bias's.
  std::vector<OpId> backward;
  for (OpId id = 0; id < trace.ops.size(); ++id)
    if (trace.strings[trace.ops[id].name] == "linear_backward") backward.push_back(id);
  ASSERT_EQ(backward.size(), 2u);
  EXPECT_EQ(messages(reduced(trace, ",bucket_cap=1B"), 4), (std::vector<Bytes>{1024, 4096}));
  for (const OpId id : backward) trace.ops[id].source = 0;
  trace.ops[backward[1]].operator_name = trace.strings.intern("aten::sum");
  EXPECT_EQ(messages(reduced(trace, ",bucket_cap=1B"), 4), (std::vector<Bytes>{4096, 1024}));
}

// All ranks send 2 (N-1)/N of all gradients, once per reduction.
TEST(Ddp, AllGradientsAreSummedOnce) {
  LayerShape shape;
  shape.passes = 3;
  const Bytes P = 1024 + 2048 + 4096;
  const Trace trace = layer_trace(shape);
  EXPECT_EQ(messages(reduced(trace), 4), (std::vector<Bytes>{P, P, P}));
  EXPECT_EQ(messages(reduced(trace, ",accumulation=no_sync"), 4), (std::vector<Bytes>{P}));
}

// Buckets live beside the gradients, all the time; as views they are the gradients.
TEST(Ddp, BucketViewsSaveTheGradients) {
  LayerShape shape;
  shape.parameter_bytes.assign(8, 4096);
  shape.steps = 2;
  const Trace trace = layer_trace(shape);
  const Trace beside = reduced(trace), views = reduced(trace, ",gradient_as_bucket_view=1");
  EXPECT_EQ(most(beside), 2 * 8 * 4096);
  EXPECT_EQ(most(views), 8 * 4096 + 4096) << "and what backward makes, until it is in its bucket";
  EXPECT_EQ(of(live_bytes(beside).front(), StorageKind::communication_buffer), 8 * 4096);
  EXPECT_EQ(of(live_bytes(views).front(), StorageKind::gradient), 8 * 4096);
  EXPECT_EQ(kernels(beside, "ddp.mul_out"), 2u * 8);
  EXPECT_EQ(kernels(beside, "ddp.copy_"), 2u * 8);
  EXPECT_EQ(kernels(views, "ddp.mul_out"), 2u * 8);
  EXPECT_EQ(kernels(views, "ddp.copy_"), 0u);
}

// Gradients that stay from step to step are views already, and passes after the first find theirs in the bucket.
TEST(Ddp, WhatIsAViewAlreadyIsDividedInPlace) {
  GptShape gpt;
  gpt.preexisting_gradients = true;
  const Trace stay = reduced(gpt_step(gpt), ",gradient_as_bucket_view=1");
  EXPECT_EQ(kernels(stay, "ddp.mul_out"), 0u);
  EXPECT_EQ(kernels(stay, "ddp.div_"), 6u * gpt.layers + 2);
  EXPECT_EQ(most(stay), 2 * parameter_count(gpt));
  LayerShape shape;
  shape.passes = 3;
  const Trace passes = reduced(layer_trace(shape), ",gradient_as_bucket_view=1");
  EXPECT_EQ(kernels(passes, "ddp.mul_out"), 3u);
  EXPECT_EQ(kernels(passes, "ddp.div_"), 2u * 3);
}

TEST(Ddp, EverySettingLeavesASoundTrace) {
  for (const bool preexisting : {false, true})
    for (const char* more :
         {"", ",gradient_as_bucket_view=1", ",bucket_cap=100B", ",bucket_cap=1,gradient_as_bucket_view=1"}) {
      GptShape gpt;
      gpt.steps = 2;
      gpt.preexisting_gradients = preexisting;
      LayerShape passes;
      passes.passes = 2;
      passes.steps = 2;
      for (const Trace& trace : {gpt_step(gpt), layer_trace(passes)})
        for (const char* accumulation : {"", ",accumulation=no_sync"}) {
          const Trace result = reduced(trace, std::string(more) + accumulation);
          EXPECT_EQ(check(result), std::vector<std::string>{}) << more;
          EXPECT_EQ(races(result), std::vector<std::string>{}) << more;
          EXPECT_EQ(result.ranks, 4u);
        }
    }
}

// Each wait protects something.
TEST(Ddp, WithoutOneOfItsWaitsThereIsARace) {
  const Trace result = reduced(layer_trace({}), ",bucket_cap=1000B");
  ASSERT_EQ(races(result), std::vector<std::string>{});
  int waits = 0, needed = 0;
  for (OpId id = 0; id < result.ops.size(); ++id) {
    if (result.ops[id].kind != OpKind::event_wait) continue;
    Trace broken = result;
    broken.ops[id] = Op{};
    ++waits;
    needed += !races(broken).empty();
  }
  EXPECT_EQ(waits, 6);
  EXPECT_EQ(needed, waits);
}

// Three gradients of 1 MB, a bucket each, two ranks at 100 GB/s: 10 us per all-reduce, 2 us per copy, kernels 1 us.
// Backward 4..5, into the bucket 5..7, summed 7..17; 7..8, 8..10, 17..27; 10..11, 11..13, 27..37. Compute copies back
// at 17, 27 and 37, until 39, and updates until 42. The host waits for nothing.
TEST(Ddp, TimesOfASmallStepByHand) {
  LayerShape shape;
  shape.parameter_bytes = {1'000'000, 1'000'000, 1'000'000};
  Trace trace = layer_trace(shape);
  trace.constants.event_latency = Duration{0};
  SimulationOptions options;
  options.allocator = "ideal";
  const Machine machine = test_machine();
  EXPECT_EQ(simulate(reduced(trace, ",bucket_cap=1000000", 2), machine, options).gpu_span, microseconds(42));
  // As views nothing is copied back: 37 + 3.
  EXPECT_EQ(simulate(reduced(trace, ",bucket_cap=1000000,gradient_as_bucket_view=1", 2), machine, options).gpu_span,
            microseconds(40));
}

TEST(Ddp, RefusesByName) {
  LayerShape shape;
  shape.captured_all_reduce = true;
  for (const auto& [trace, more, part] :
       {std::tuple{layer_trace(shape), "", "already all-reduces gradients, which is what this policy would add"},
        std::tuple{layer_trace({}), ",bucket_cap=0", "bucket_cap=0"}}) {
    try {
      reduced(trace, more);
      FAIL() << part;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
