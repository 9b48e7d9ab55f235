// Do re-runs of a sharded step find the parameters that they read: whole, in time, and gathered no more often than need
// be?
#include "policies/recompute/rerun_gathers.h"

#include <gtest/gtest.h>

#include "sim/human_text.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/layer_trace.h"
#include "tests/support/races.h"
#include "tests/support/rewrite_checks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Trace sharded(const Trace& trace, const std::string& zero, const std::string& checkpoint) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  std::vector<PolicySpec> specs{parse_policy("zero:stage=3,ranks=4" + zero)};
  if (!checkpoint.empty()) specs.push_back(parse_policy(checkpoint));
  return apply_rewriters(trace, specs, machine, *pricer);
}

Trace layers(int count) {
  GptShape shape;
  shape.layers = count;
  return gpt_step(shape);
}

Bytes gathered_bytes(const Trace& trace) {
  Bytes bytes = 0;
  for (const Op& op : trace.ops) bytes += gathers_parameters(trace, op) ? op.bytes : 0;
  return bytes;
}

// Gathered for a while, and standing whole at once.
Bytes most_whole(const Trace& trace) {
  const std::vector<Bytes> live = live_bytes(trace, StorageKind::parameter);
  return *std::max_element(live.begin(), live.end()) - live.front();
}

TEST(RerunGathers, EverySettingLeavesASoundTraceWithTheSameContents) {
  GptShape shape;
  shape.layers = 5;
  shape.steps = 2;
  const Trace trace = gpt_step(shape);
  for (const char* checkpoint : {"checkpoint:mode=full", "checkpoint:mode=full,early_stop=0", "checkpoint:every=2",
                                 "checkpoint:every=5", "checkpoint:mode=sqrt", "checkpoint:ops=layer_norm+gelu",
                                 "checkpoint:modules=layers.*.mlp", "checkpoint:mode=full,fraction=0.5"})
    for (const char* zero :
         {"", ",prefetch=0", ",overlap=0", ",reuse_distance=1KiB", ",reuse_distance=4KiB", ",reuse_distance=1GiB"}) {
      const Trace result = sharded(trace, zero, checkpoint);
      EXPECT_EQ(check(result), std::vector<std::string>{}) << checkpoint << zero;
      EXPECT_EQ(races(result), std::vector<std::string>{}) << checkpoint << zero;
      const std::vector<std::uint64_t> hashes = producer_hashes(result);
      std::size_t compared = 0;
      for (OpId id = 0; id < result.ops.size(); ++id) {
        if (result.ops[id].source == kNoOp || hashes[id] == 0) continue;
        EXPECT_EQ(hashes[id], hashes[result.ops[id].source]) << checkpoint << zero << " op " << id;
        ++compared;
      }
      EXPECT_GT(compared, 0u) << checkpoint << zero;
      EXPECT_EQ(live_bytes(result, StorageKind::parameter).front(), live_bytes(result, StorageKind::parameter).back());
    }
}

// The re-run of one layer needs not a byte more on the wire, nor in memory, than backward does.
TEST(RerunGathers, ALayersReRunReadsWhatBackwardHasGathered) {
  const Trace trace = layers(6);
  for (const char* zero : {"", ",prefetch=0", ",overlap=0"}) {
    const Trace plain = sharded(trace, zero, ""), result = sharded(trace, zero, "checkpoint:mode=full");
    EXPECT_GT(count(result, Phase::recompute), 0u);
    EXPECT_EQ(gathered_bytes(result), gathered_bytes(plain)) << zero;
    EXPECT_EQ(most_whole(result), most_whole(plain)) << zero;
  }
}

// Without prefetch backward's gather comes behind the re-run: it moves up.
TEST(RerunGathers, BackwardsGatherMovesBeforeTheReRun) {
  const Trace result = sharded(layers(3), ",prefetch=0", "checkpoint:mode=full");
  const Dataflow flow(result);
  const ParameterGathers gathers(result, flow);
  std::size_t reads = 0;
  for (OpId id = 0; id < result.ops.size(); ++id)
    if (result.ops[id].phase == Phase::recompute)
      for (const Use& use : result.uses_of(result.ops[id])) {
        const OpId gather = gathers.gather_of(use.storage);
        if (gather == kNoOp) continue;
        ++reads;
        EXPECT_LT(gather, id);
        EXPECT_TRUE(std::ranges::any_of(flow.touches(use.storage), [&](const Touch& touch) {
          return result.ops[touch.op].phase == Phase::backward && touch.op > id;
        })) << "backward reads the same";
      }
  EXPECT_GT(reads, 0u);
}

// Two layers in one re-run: the first one's parameters would stand whole through the second one's re-run and backward.
TEST(RerunGathers, WhatLiesFarFromBackwardIsGatheredTwiceUnlessTheReuseDistanceSpansIt) {
  const Trace trace = layers(4);
  const Trace plain = sharded(trace, ",prefetch=0", ""), often = sharded(trace, ",prefetch=0", "checkpoint:every=2");
  const Bytes more = gathered_bytes(often) - gathered_bytes(plain);
  EXPECT_GT(more, 0);
  std::string note;
  for (const std::string& line : often.notes)
    if (line.find("zero's reuse_distance=") != std::string::npos) note = line;
  EXPECT_NE(note.find("2 gathers of parameters for re-runs, " + human_bytes(more)), std::string::npos) << note;
  const std::size_t begin = note.find("reuse_distance=");
  ASSERT_NE(begin, std::string::npos);
  const std::string setting = "," + note.substr(begin, note.find(' ', begin) - begin) + ",prefetch=0";
  const Trace kept = sharded(trace, setting, "checkpoint:every=2");
  EXPECT_EQ(gathered_bytes(kept), gathered_bytes(sharded(trace, setting, "")));
  EXPECT_GT(most_whole(kept), most_whole(often));
}

// Prefetched, the re-run's gathers leave while the work before it still computes.
TEST(RerunGathers, ReRunsPrefetchAsTheStepDoes) {
  GptShape shape;
  shape.layers = 4;
  shape.hidden = 64;
  const Trace trace = gpt_step(shape);
  const Duration ahead = simulated(sharded(trace, "", "checkpoint:every=2")).gpu_span;
  const Duration late = simulated(sharded(trace, ",prefetch=0", "checkpoint:every=2")).gpu_span;
  EXPECT_LT(ahead, late);
}

// Stages 1 and 2 gather in place after the update: nothing is gone in backward.
TEST(RerunGathers, ParametersThatStayWholeAreNotGathered) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  const Trace trace = layers(3);
  for (const char* stage : {"0", "1", "2"}) {
    const PolicySpec zero = parse_policy("zero:ranks=4,stage=" + std::string(stage));
    const Trace plain = apply_rewriters(trace, {zero}, machine, *pricer);
    const Trace result = apply_rewriters(trace, {zero, parse_policy("checkpoint:mode=full")}, machine, *pricer);
    EXPECT_EQ(races(result), std::vector<std::string>{}) << stage;
    Bytes before = 0, after = 0;
    for (const Op& op : plain.ops) before += op.kind == OpKind::collective ? op.bytes : 0;
    for (const Op& op : result.ops) after += op.kind == OpKind::collective ? op.bytes : 0;
    EXPECT_EQ(before, after) << stage;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
