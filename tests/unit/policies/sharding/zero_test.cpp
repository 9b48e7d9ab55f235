// Does zero split memory, traffic and work as the papers say, and refuse what it cannot split?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "policies/sharding/zero_buckets.h"
#include "policies/sharding/zero_gather_plan.h"
#include "policies/sharding/zero_partition.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/layer_trace.h"
#include "tests/support/live_bytes.h"
#include "tests/support/races.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Trace rewritten_by(const Trace& trace, const std::vector<std::string>& policies,
                   const Machine& machine = test_machine()) {
  std::vector<PolicySpec> specs;
  for (const std::string& policy : policies) specs.push_back(parse_policy(policy));
  const auto pricer = test_pricer(machine);
  return apply_rewriters(trace, specs, machine, *pricer);
}

std::string zero(int stage, int ranks, const std::string& more = "") {
  return "zero:stage=" + std::to_string(stage) + ",ranks=" + std::to_string(ranks) + more;
}

Bytes sent(const Trace& trace, CollectiveKind kind) {
  Bytes bytes = 0;
  for (const Op& op : trace.ops)
    if (op.kind == OpKind::collective && op.collective == kind) bytes += op.bytes;
  return bytes;
}

std::size_t count(const Trace& trace, CollectiveKind kind) {
  std::size_t n = 0;
  for (const Op& op : trace.ops) n += op.kind == OpKind::collective && op.collective == kind;
  return n;
}

Time simulated_end(const Trace& trace) {
  SimulationOptions options;
  options.allocator = "ideal";
  return simulate(trace, test_machine(), options).end;
}

std::size_t first_update(const Trace& trace) {
  std::size_t i = 0;
  while (trace.ops[i].operator_name == 0 || trace.strings[trace.ops[i].operator_name].find("adam") == std::string::npos)
    ++i;
  return i;
}

void expect_refusal(const Trace& trace, const std::string& policy, const std::string& part,
                    const Machine& machine = test_machine()) {
  try {
    rewritten_by(trace, {policy}, machine);
    FAIL() << policy << " must be refused";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

// ---- memory ----

// 16 bytes per parameter: 2 + 2 of 16-bit parameters and gradients, 12 of fp32 master copy and moments.
TEST(Zero, SevenBillionParametersHold112GigabytesBeforeActivations) {
  GptShape shape = seven_billion_gpt();
  shape.preexisting_gradients = true;
  const Trace trace = gpt_step(shape);
  EXPECT_EQ(model_state(live_bytes(trace).front()), 112'000'000'000);
  const Trace stage0 = rewritten_by(trace, {zero(0, 8)});
  EXPECT_EQ(model_state(live_bytes(stage0).front()), 112'000'000'000);
}

// Rajbhandari et al. 2020, figure 1: 4P + 12P/N, 2P + 14P/N, 16P/N.
TEST(Zero, ModelStatePerRankIsThePapers) {
  GptShape shape = seven_billion_gpt();
  shape.preexisting_gradients = true;
  const Trace trace = gpt_step(shape);
  constexpr Bytes P = 7'000'000'000, N = 8;
  const std::map<int, Bytes> expected{{1, 4 * P + 12 * P / N}, {2, 2 * P + 14 * P / N}, {3, 16 * P / N}};
  for (const auto& [stage, bytes] : expected)
    EXPECT_EQ(model_state(live_bytes(rewritten_by(trace, {zero(stage, N)})).front()), bytes) << "stage " << stage;
}

// The same with gradients that backward allocates: what lives when the optimizer begins.
TEST(Zero, OnlySlicesAreLeftWhenTheOptimizerBegins) {
  const GptShape shape;
  const Trace trace = gpt_step(shape);
  const Bytes P = parameter_count(shape), N = 8;
  ASSERT_EQ(P % N, 0);
  const std::map<int, Bytes> expected{{0, 16 * P}, {1, 4 * P + 12 * P / N}, {2, 2 * P + 14 * P / N}, {3, 16 * P / N}};
  for (const auto& [stage, bytes] : expected) {
    const Trace result = rewritten_by(trace, {zero(stage, N)});
    EXPECT_EQ(model_state(live_bytes(result)[first_update(result)]), bytes) << "stage " << stage;
  }
}

TEST(Zero, WholeGradientsLiveForTwoBucketsAtMost) {
  LayerShape shape;
  shape.parameter_bytes.assign(20, 4096);
  const Trace trace = layer_trace(shape);
  for (const int stage : {2, 3}) {
    const Trace result = rewritten_by(trace, {zero(stage, 4, ",bucket_bytes=8KiB")});
    Bytes most = 0;
    for (const LiveBytes& live : live_bytes(result)) most = std::max(most, of(live, StorageKind::gradient));
    EXPECT_LE(most, 20 * 1024 + 2 * 8192 + 4096) << "stage " << stage;
    EXPECT_GT(most, 20 * 1024 + 8192) << "stage " << stage;
  }
}

TEST(Zero, StageThreeHoldsTwoUnitsWhole) {
  LayerShape shape;
  shape.parameter_bytes.assign(10, 4096);
  const Trace trace = layer_trace(shape);
  const auto most = [&](const std::string& more) {
    Bytes bytes = 0;
    for (const LiveBytes& live : live_bytes(rewritten_by(trace, {zero(3, 4, more)})))
      bytes = std::max(bytes, of(live, StorageKind::parameter));
    return bytes - 10 * 1024;
  };
  EXPECT_EQ(most(""), 2 * 4096);
  EXPECT_EQ(most(",prefetch=0"), 4096);
  EXPECT_EQ(most(",reuse_distance=1GiB"), 10 * 4096);
}

// A parameter of 5 elements over 4 ranks: alone it is padded to 8; in a flat buffer only the end is.
TEST(Zero, PartsArePadded) {
  LayerShape shape;
  shape.parameter_bytes = {10, 10, 10};
  const Trace trace = layer_trace(shape);
  const auto parameters = [](const Trace& t) { return of(live_bytes(t).front(), StorageKind::parameter); };
  const auto states = [](const Trace& t) { return of(live_bytes(t).front(), StorageKind::optimizer_state); };
  const Trace stage1 = rewritten_by(trace, {zero(1, 4)}), stage3 = rewritten_by(trace, {zero(3, 4)});
  EXPECT_EQ(states(trace), 9 * 20);
  EXPECT_EQ(states(stage1), 12 * 4);  // 45 elements: 12 per rank
  EXPECT_EQ(parameters(stage3), 3 * 2 * 2);
  EXPECT_EQ(sent(stage1, CollectiveKind::all_gather), 32 / 4 * 3);      // 15 elements, padded to 16
  EXPECT_EQ(sent(stage3, CollectiveKind::all_gather), 2 * 48 / 4 * 3);  // three times 8 elements, twice
}

// ---- traffic ----

// Bytes that a rank sends per step, of P bytes of parameters: 2P, 2P, 2P, 3P, times (N-1)/N.
TEST(Zero, TrafficIsThePapers) {
  LayerShape shape;
  shape.parameter_bytes = {1024, 65536, 2048, 4096, 8192};
  const Trace trace = layer_trace(shape);
  const Bytes P = 1024 + 65536 + 2048 + 4096 + 8192, N = 8, part = P / N * (N - 1);
  const Trace stage0 = rewritten_by(trace, {zero(0, N)});
  EXPECT_EQ(sent(stage0, CollectiveKind::all_reduce), 2 * part);
  EXPECT_EQ(sent(stage0, CollectiveKind::all_gather) + sent(stage0, CollectiveKind::reduce_scatter), 0);
  for (const int stage : {1, 2}) {
    const Trace result = rewritten_by(trace, {zero(stage, N)});
    EXPECT_EQ(sent(result, CollectiveKind::reduce_scatter), part);
    EXPECT_EQ(sent(result, CollectiveKind::all_gather), part);
    EXPECT_EQ(sent(result, CollectiveKind::all_reduce), 0);
  }
  const Trace stage3 = rewritten_by(trace, {zero(3, N)});
  EXPECT_EQ(sent(stage3, CollectiveKind::reduce_scatter), part);
  EXPECT_EQ(sent(stage3, CollectiveKind::all_gather), 2 * part);
}

// A GPT's output layer shares the embedding's weight, so stage 3 gathers that once more than the rest:
// for the embedding, for the output layer, and for its backward.
TEST(Zero, StageThreeGathersASharedWeightAtEachOfItsUnits) {
  const GptShape shape;
  const Bytes P = 2 * parameter_count(shape), E = 2 * (shape.vocabulary + shape.sequence) * shape.hidden, N = 8;
  const Trace result = rewritten_by(gpt_step(shape), {zero(3, N)});
  EXPECT_EQ(sent(result, CollectiveKind::reduce_scatter), P / N * (N - 1));
  EXPECT_EQ(sent(result, CollectiveKind::all_gather), (2 * P + E) / N * (N - 1));
}

// A layer's re-run and its backward share a gather, whether a policy re-runs it or the trace itself; a re-run of
// several layers gathers again for all but the last, unless their parameters are kept.
TEST(Zero, WithCheckpointingStageThreeGathersOnceMoreWhereBackwardIsFar) {
  GptShape gpt;
  gpt.layers = 4;
  const Trace trace = gpt_step(gpt);
  const Bytes N = 8, h = gpt.hidden, layer = 2 * (12 * h * h + 13 * h) / N * (N - 1);
  const auto gathered = [&](const std::vector<std::string>& policies) {
    return sent(rewritten_by(trace, policies), CollectiveKind::all_gather);
  };
  const Bytes plain = gathered({zero(3, N)});
  for (const char* more : {"", ",prefetch=0", ",overlap=0"}) {
    EXPECT_EQ(gathered({"checkpoint:mode=full", zero(3, N, more)}), plain) << more;
    const Trace rerun = rewritten_by(trace, {"checkpoint:mode=full"});
    EXPECT_EQ(sent(rewritten_by(rerun, {zero(3, N, more)}), CollectiveKind::all_gather), plain) << more;
  }
  EXPECT_EQ(gathered({"checkpoint:every=2", zero(3, N, ",prefetch=0")}), plain + 2 * layer);
  EXPECT_EQ(gathered({"checkpoint:every=4", zero(3, N, ",prefetch=0")}), plain + 3 * layer);
  const std::string kept = ",prefetch=0,reuse_distance=" + std::to_string(4 * 2 * (12 * h * h + 13 * h));
  EXPECT_EQ(gathered({"checkpoint:every=2", zero(3, N, kept)}), gathered({zero(3, N, kept)}));
  EXPECT_EQ(sent(rewritten_by(trace, {"checkpoint:every=2", zero(3, N)}), CollectiveKind::reduce_scatter),
            sent(rewritten_by(trace, {zero(3, N)}), CollectiveKind::reduce_scatter));
}

// The note's figures are those of the run that follows its advice, also where re-runs of several layers come together.
TEST(Zero, SaysWhatAReuseDistanceSavesUnderCheckpointing) {
  GptShape gpt;
  gpt.layers = 6;
  const auto advice = [](const Trace& t) {
    for (const std::string& note : t.notes)
      if (note.find("With reuse_distance=") != std::string::npos) return note;
    return std::string();
  };
  const Trace trace = rewritten_by(gpt_step(gpt), {"checkpoint:every=3"});  // re-runs that the step has already
  const Trace often = rewritten_by(trace, {zero(3, 8)});
  const std::string note = advice(often);
  const std::size_t begin = note.find("reuse_distance=");
  ASSERT_NE(begin, std::string::npos);
  const Trace kept = rewritten_by(trace, {zero(3, 8, "," + note.substr(begin, note.find(' ', begin) - begin))});
  const Bytes less = sent(kept, CollectiveKind::all_gather), more = sent(often, CollectiveKind::all_gather);
  EXPECT_LT(less, more);
  EXPECT_NE(note.find(human_bytes(less) + " sent per rank instead of " + human_bytes(more)), std::string::npos) << note;
  EXPECT_EQ(advice(kept), "") << "nothing is left to advise";
  for (const char* checkpoint : {"checkpoint:mode=full", "checkpoint:ops=layer_norm"})
    EXPECT_EQ(advice(rewritten_by(rewritten_by(gpt_step(gpt), {checkpoint}), {zero(3, 8)})), "") << checkpoint;
  EXPECT_EQ(advice(rewritten_by(gpt_step(gpt), {zero(3, 8)})), "") << "nothing is re-run";
}

// The re-run of a norm reads the norm's weight and bias, and backward keeps what it has: not a byte more than without.
TEST(Zero, ARerunOfANormGathersTheNormAlone) {
  GptShape gpt;
  gpt.layers = 4;
  const Bytes N = 8, norm = 2 * 2 * gpt.hidden, layer = 2 * (12 * gpt.hidden * gpt.hidden + 13 * gpt.hidden);
  const Trace trace = gpt_step(gpt), rerun = rewritten_by(trace, {"checkpoint:ops=layer_norm"});
  ASSERT_TRUE(std::ranges::any_of(rerun.ops, [](const Op& op) { return op.phase == Phase::recompute; }));
  const Bytes plain = sent(rewritten_by(trace, {zero(3, N)}), CollectiveKind::all_gather);
  const Bytes with = sent(rewritten_by(rerun, {zero(3, N)}), CollectiveKind::all_gather);
  EXPECT_EQ(sent(rewritten_by(trace, {"checkpoint:ops=layer_norm", zero(3, N)}), CollectiveKind::all_gather), plain);
  EXPECT_GE(with, plain);
  EXPECT_LE(with, plain + (2 * gpt.layers + 1) * norm / N * (N - 1)) << "a layer is " << layer;
}

TEST(Zero, RecomputedContentIsTheOriginals) {
  GptShape gpt;
  gpt.layers = 3;
  const Trace trace = rewritten_by(gpt_step(gpt), {"checkpoint:mode=full", zero(3, 4)});
  const auto hashes = producer_hashes(trace);
  int compared = 0;
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    if (trace.ops[id].source == kNoOp || hashes[id] == 0) continue;
    EXPECT_EQ(hashes[id], hashes[trace.ops[id].source]) << trace.strings[trace.ops[id].name];
    ++compared;
  }
  EXPECT_GT(compared, 20);
}

TEST(Zero, GradientAccumulationReducesOncePerUpdateOrOncePerPass) {
  LayerShape shape;
  shape.passes = 3;
  const Bytes P = 1024 + 2048 + 4096, N = 4, part = P / N * (N - 1);
  const Trace trace = layer_trace(shape);
  EXPECT_EQ(sent(rewritten_by(trace, {zero(0, N)}), CollectiveKind::all_reduce), 2 * part);
  EXPECT_EQ(sent(rewritten_by(trace, {zero(1, N)}), CollectiveKind::reduce_scatter), part);
  const Trace stage2 = rewritten_by(trace, {zero(2, N)}), stage3 = rewritten_by(trace, {zero(3, N)});
  EXPECT_EQ(sent(stage2, CollectiveKind::reduce_scatter), 3 * part);
  EXPECT_EQ(sent(stage2, CollectiveKind::all_gather), part);
  EXPECT_EQ(sent(stage3, CollectiveKind::reduce_scatter), 3 * part);
  EXPECT_EQ(sent(stage3, CollectiveKind::all_gather), 3 * 2 * part);
  for (const Trace* result : {&stage2, &stage3})
    EXPECT_EQ(of(live_bytes(*result)[first_update(*result)], StorageKind::gradient), P / N);
}

// ---- soundness ----

TEST(Zero, EveryStageAndSettingLeavesASoundTrace) {
  for (const bool preexisting : {false, true})
    for (const int stage : {0, 1, 2, 3})
      for (const char* more :
           {"", ",overlap=0", ",prefetch=0", ",reuse_distance=1KiB", ",bucket_bytes=1", ",bucket_bytes=1GiB"}) {
        GptShape shape;
        shape.steps = 2;
        shape.preexisting_gradients = preexisting;
        const Trace trace = gpt_step(shape);
        const Trace result = rewritten_by(trace, {zero(stage, 4, more)});
        EXPECT_EQ(check(result), std::vector<std::string>{}) << stage << more;
        EXPECT_EQ(races(result), std::vector<std::string>{}) << stage << more;
        EXPECT_EQ(result.ranks, 4u);
        EXPECT_EQ(result.steps.size(), 2u);
        EXPECT_GT(result.notes.size(), trace.notes.size());
        for (const Op& op : result.ops) {
          if (op.added) {
            EXPECT_EQ(op.origin, Origin::modelled);
          }
        }
      }
}

// The control of the above: each wait that zero adds protects something, so none may be missing.
TEST(Zero, WithoutOneOfItsWaitsThereIsARace) {
  for (const int stage : {0, 1, 2, 3}) {
    LayerShape shape;
    shape.steps = 2;
    const Trace result = rewritten_by(layer_trace(shape), {zero(stage, 4, ",bucket_bytes=1024")});
    ASSERT_EQ(races(result), std::vector<std::string>{});
    int waits = 0, needed = 0;
    for (OpId id = 0; id < result.ops.size(); ++id) {
      if (result.ops[id].kind != OpKind::event_wait) continue;
      Trace broken = result;
      broken.ops[id] = Op{};
      ++waits;
      needed += !races(broken).empty();
    }
    EXPECT_GT(needed, 0) << "stage " << stage;
    EXPECT_GE(2 * needed, waits) << "stage " << stage << ": " << needed << " of " << waits;
  }
}

TEST(Zero, SameInputSameOps) {
  const Trace trace = gpt_step({});
  const Trace a = rewritten_by(trace, {zero(3, 4)}), b = rewritten_by(trace, {zero(3, 4)});
  ASSERT_EQ(a.ops.size(), b.ops.size());
  for (std::size_t i = 0; i < a.ops.size(); ++i) {
    EXPECT_EQ(a.ops[i].target, b.ops[i].target);
    EXPECT_EQ(a.ops[i].duration, b.ops[i].duration);
  }
  EXPECT_EQ(a.notes, b.notes);
}

// ---- time ----

TEST(Zero, TheOptimizerDoesItsShareOfTheWork) {
  const Trace trace = layer_trace({});
  for (const int stage : {0, 1, 2, 3}) {
    const Trace result = rewritten_by(trace, {zero(stage, 4)});
    int updates = 0;
    for (const Op& op : result.ops) {
      if (result.strings[op.operator_name] != "adam") continue;
      ++updates;
      EXPECT_EQ(op.duration, stage == 0 ? nanoseconds(1000) : nanoseconds(250));
      EXPECT_EQ(op.origin, stage == 0 ? Origin::measured : Origin::transferred);
    }
    EXPECT_EQ(updates, 3);
  }
}

Duration span(const Trace& trace, const Machine& machine) {
  SimulationOptions options;
  options.allocator = "ideal";
  return simulate(trace, machine, options).gpu_span;
}

// Three parameters of 1 MB, two ranks at 100 GB/s: a reduce-scatter or gather of one takes 5 us, an
// all-reduce 10 us. Kernels take 1 us each: 3 forward, loss, 3 backward, 3 updates. No host costs.
TEST(Zero, TimesOfASmallStepByHand) {
  LayerShape shape;
  shape.parameter_bytes = {1'000'000, 1'000'000, 1'000'000};
  Trace trace = layer_trace(shape);
  trace.constants.event_latency = Duration{0};
  const Machine machine = test_machine();
  ASSERT_EQ(span(trace, machine), microseconds(10));
  // One gradient per bucket of 1 MB, so no buffers. Backward ends at 7; the first gradient is ready at 5.
  const std::string one = ",bucket_bytes=1000000";
  // All-reduces 5..15, 15..25, 25..35, then three updates.
  EXPECT_EQ(span(rewritten_by(trace, {zero(0, 2, one)}), machine), microseconds(38));
  // Not overlapped: 4 + 3 * (1 + 10) + 3.
  EXPECT_EQ(span(rewritten_by(trace, {zero(0, 2, one + ",overlap=0")}), machine), microseconds(40));
  // Reduce-scatters 5..10, 10..15, 15..20; updates of 0.5 us until 21.5; gathers 20.5..35.5.
  EXPECT_EQ(span(rewritten_by(trace, {zero(1, 2, one)}), machine), microseconds(35) + nanoseconds(500));
}

TEST(Zero, OverlapAndPrefetchHideCommunication) {
  LayerShape shape;
  shape.parameter_bytes.assign(8, 200'000);  // 1 us per collective and rank pair at 100 GB/s
  const Trace trace = layer_trace(shape);
  const Machine machine = test_machine();
  for (const int stage : {0, 1, 2, 3})
    EXPECT_LT(span(rewritten_by(trace, {zero(stage, 2, ",bucket_bytes=200000")}), machine),
              span(rewritten_by(trace, {zero(stage, 2, ",bucket_bytes=200000,overlap=0")}), machine))
        << "stage " << stage;
  EXPECT_LT(span(rewritten_by(trace, {zero(3, 2)}), machine),
            span(rewritten_by(trace, {zero(3, 2, ",prefetch=0")}), machine));
}

TEST(Zero, NvlinkMatters) {
  LayerShape shape;
  shape.parameter_bytes.assign(6, 2'000'000);
  const Trace trace = layer_trace(shape);
  const Machine nvlink = test_machine(), pcie = test_machine_without_nvlink();
  for (const int stage : {0, 1, 2, 3}) {
    const Duration fast = span(rewritten_by(trace, {zero(stage, 8)}, nvlink), nvlink);
    const Duration slow = span(rewritten_by(trace, {zero(stage, 8)}, pcie), pcie);
    EXPECT_GT(to_seconds(slow), 5 * to_seconds(fast)) << "stage " << stage;
  }
}

// ---- refusals ----

TEST(Zero, RefusesByName) {
  const Trace trace = layer_trace({});
  expect_refusal(trace, "zero:stage=1,ranks=1", "ranks=1");
  expect_refusal(trace, "zero:stage=4,ranks=8", "stage=4");
  expect_refusal(trace, "zero:stage=1", "ranks");
  expect_refusal(trace, "zero:stage=1,ranks=8,bucket_bytes=0", "bucket_bytes=0");
  expect_refusal(trace, "zero:stage=1,ranks=8,mode=deepspeed", "mode=deepspeed");
  Machine small = test_machine();
  small.fabrics.pop_back();
  expect_refusal(trace, "zero:stage=1,ranks=16", "nvlink reaches 8", small);
  LayerShape shape;
  shape.optimizer = false;
  expect_refusal(layer_trace(shape), "zero:stage=1,ranks=8", "no optimizer step");
  EXPECT_NO_THROW(rewritten_by(layer_trace(shape), {zero(0, 8)}));
}

TEST(Zero, RefusesAnOptimizerThatRunsInsideBackward) {
  Trace trace = gpt_step({});
  // The last backward kernel goes behind the first update.
  const auto update = std::find_if(trace.ops.begin(), trace.ops.end(), [](const Op& op) {
    return op.kind == OpKind::kernel && op.phase == Phase::optimizer;
  });
  ASSERT_NE(update, trace.ops.end());
  const auto backward = std::find_if(trace.ops.begin(), trace.ops.end(), [](const Op& op) {
    return op.kind == OpKind::kernel && op.phase == Phase::backward;
  });
  Op late = *backward;
  late.use_count = 0;
  late.thread = update->thread;
  trace.ops.insert(update + 1, late);
  for (Step& step : trace.steps) {
    if (step.first > 0) ++step.first;
    ++step.last;
  }
  expect_refusal(trace, "zero:stage=1,ranks=8", "while backward still runs");
}

TEST(Zero, RefusesATraceThatDoesNotKnowItsStorages) {
  Trace trace = layer_trace({});
  for (Storage& s : trace.storages)
    if (s.kind == StorageKind::parameter) s.kind = StorageKind::unknown;
  expect_refusal(trace, "zero:stage=3,ranks=8", "no storage is known to be a parameter");
  trace = layer_trace({});
  for (Storage& s : trace.storages)
    if (s.kind == StorageKind::gradient) s.kind = StorageKind::unknown;
  expect_refusal(trace, "zero:stage=1,ranks=8", "gradient");
  trace.knowledge.dataflow = false;
  expect_refusal(trace, "zero:stage=1,ranks=8", "dataflow");
}

TEST(Zero, ReplacesCapturedGradientAllReducesAndRefusesOtherCollectives) {
  LayerShape shape;
  shape.captured_all_reduce = true;
  Trace trace = layer_trace(shape);
  expect_refusal(trace, "zero:stage=0,ranks=4", "already all-reduces gradients");
  const Trace result = rewritten_by(trace, {zero(2, 4)});
  EXPECT_EQ(count(result, CollectiveKind::all_reduce), 0u);
  EXPECT_EQ(sent(result, CollectiveKind::reduce_scatter), (1024 + 2048 + 4096) / 4 * 3);
  for (Op& op : trace.ops)
    if (op.kind == OpKind::collective) op.collective = CollectiveKind::all_to_all;
  expect_refusal(trace, "zero:stage=2,ranks=4", "ncclDevKernel_AllReduce");
}

// A step of 16 ranks with DistributedDataParallel's buckets, split over 4: as the same step without any of that, whose
// reductions leave in backward, not behind the copies back.
TEST(Zero, TakesOverTheBucketsThatAStepHasAlready) {
  LayerShape shape;
  const Trace plain = layer_trace(shape);
  shape.captured_buckets = true;
  Trace trace = layer_trace(shape);
  trace.ranks = 16;
  ASSERT_EQ(check(trace), std::vector<std::string>{});
  EXPECT_GT(of(live_bytes(trace).front(), StorageKind::communication_buffer), 0);
  for (const int stage : {1, 2, 3}) {
    const Trace expected = rewritten_by(plain, {zero(stage, 4)}), result = rewritten_by(trace, {zero(stage, 4)});
    EXPECT_EQ(result.ranks, 4u);
    ASSERT_EQ(result.ops.size(), expected.ops.size()) << "stage " << stage;
    for (OpId id = 0; id < result.ops.size(); ++id) {
      EXPECT_EQ(result.ops[id].kind, expected.ops[id].kind) << "op " << id;
      EXPECT_EQ(result.strings[result.ops[id].name], expected.strings[expected.ops[id].name]) << "op " << id;
    }
    EXPECT_EQ(of(live_bytes(result).front(), StorageKind::communication_buffer), 0);
    EXPECT_EQ(simulated_end(result), simulated_end(expected));
    EXPECT_TRUE(std::ranges::any_of(result.notes, [](const std::string& note) {
      return note ==
             "zero: takes the place of the step's own data parallelism over 16 ranks: 3 all-reduces of "
             "gradients and 7.168 kB of buckets go";
    }));
  }
}

// A recommender's step: tables live on one rank each and their features are exchanged, the layers behind are the same
// on all ranks. These are split as without the tables, which stay whole, with the exchange.
TEST(Zero, TablesOfOneRankAndTheirExchangesStay) {
  LayerShape shape;
  const Trace plain = layer_trace(shape);
  shape.captured_buckets = shape.exchanges = true;
  const Trace trace = layer_trace(shape);
  ASSERT_EQ(check(trace), std::vector<std::string>{});
  for (const int stage : {1, 2, 3}) {
    const Trace result = rewritten_by(trace, {zero(stage, 4)}), expected = rewritten_by(plain, {zero(stage, 4)});
    EXPECT_EQ(check(result), std::vector<std::string>{});
    EXPECT_EQ(count(result, CollectiveKind::all_to_all), 1u);
    EXPECT_EQ(count(result, CollectiveKind::all_reduce), 0u);
    for (const CollectiveKind kind : {CollectiveKind::reduce_scatter, CollectiveKind::all_gather})
      EXPECT_EQ(sent(result, kind), sent(expected, kind)) << "stage " << stage;
    const auto whole = live_bytes(result).front(), layers = live_bytes(expected).front();
    EXPECT_EQ(of(whole, StorageKind::parameter), of(layers, StorageKind::parameter) + 8192) << "stage " << stage;
    EXPECT_EQ(of(whole, StorageKind::optimizer_state), of(layers, StorageKind::optimizer_state) + 16384);
  }
}

// A gradient that no all-reduce sums belongs to a part of the model that is this rank's, and which states go with it
// nobody knows; a step without any exchange is plain data parallelism whose captured half is missing.
TEST(Zero, RefusesAGradientOfThisRankAlone) {
  LayerShape shape;
  shape.captured_buckets = shape.exchanges = true;
  Trace trace = layer_trace(shape);
  const auto first =
      std::ranges::find_if(trace.ops, [](const Op& op) { return op.collective == CollectiveKind::all_reduce; });
  ASSERT_NE(first, trace.ops.end());
  first->collective = CollectiveKind::none;
  first->kind = OpKind::kernel;
  expect_refusal(trace, "zero:stage=1,ranks=4", "is of no all-reduce, so that its parameter is this rank's alone");
}

// DistributedDataParallel's gradient_as_bucket_view: what backward makes is no gradient once it is in its bucket.
TEST(Zero, WhatGoesIntoABucketThatStaysIsSummedOnce) {
  LayerShape shape;
  shape.captured_buckets = shape.bucket_views = true;
  const Trace result = rewritten_by(layer_trace(shape), {zero(1, 4)});
  EXPECT_EQ(count(result, CollectiveKind::all_reduce), 0u);
  EXPECT_EQ(sent(result, CollectiveKind::reduce_scatter), (1024 + 2048 + 4096) / 4 * 3);
}

// What somebody else reads too, here the optimizer, is no bucket of zero's: it stays.
TEST(Zero, ABucketThatOthersUseStays) {
  LayerShape shape;
  shape.captured_buckets = true;
  Trace trace = layer_trace(shape);
  for (Op& op : trace.ops)
    if (trace.strings[op.name] == "copy_back") op.phase = Phase::optimizer;
  const Trace result = rewritten_by(trace, {zero(2, 4)});
  EXPECT_EQ(count(result, CollectiveKind::all_reduce), 0u);
  EXPECT_GT(of(live_bytes(result).front(), StorageKind::communication_buffer), 0);
}

TEST(Zero, AParameterThatForwardWritesStaysWhole) {
  LayerShape shape;
  Trace trace = layer_trace(shape);
  // Layer 0's forward now also writes its weight, as a running statistic would be.
  const StorageId weight = 1;
  ASSERT_EQ(trace.storages[weight].kind, StorageKind::parameter);
  std::vector<Use> uses;
  std::uint32_t version = 0;
  for (Op& op : trace.ops) {
    auto own = trace.uses_of(op);
    std::vector<Use> changed(own.begin(), own.end());
    for (Use& use : changed)
      if (use.storage == weight) use.version = use.access == Access::read ? version : ++version;
    if (trace.strings[op.name] == "linear" && trace.strings[op.module] == "layers.0")
      changed.push_back({weight, ++version, Access::write});
    op.first_use = static_cast<std::uint32_t>(uses.size());
    op.use_count = static_cast<std::uint32_t>(changed.size());
    uses.insert(uses.end(), changed.begin(), changed.end());
  }
  trace.uses = uses;
  ASSERT_EQ(check(trace), std::vector<std::string>{});
  const Trace result = rewritten_by(trace, {zero(3, 4)});
  EXPECT_EQ(of(live_bytes(result).front(), StorageKind::parameter), 1024 + (2048 + 4096) / 4);
}

// ---- parts ----

TEST(ZeroBuckets, CloseWhenReachedAsInPytorch) {
  using Groups = std::vector<std::vector<std::size_t>>;
  EXPECT_EQ(
      fill_buckets({kFirstBucket / 2, kFirstBucket / 2, MiB(10), MiB(20), 1}, MiB(25), BucketRule::close_when_reached),
      (Groups{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(fill_buckets({}, MiB(25), BucketRule::close_when_reached), Groups{});
}

TEST(ZeroBuckets, NeverExceedAsInDeepspeed) {
  using Groups = std::vector<std::vector<std::size_t>>;
  EXPECT_EQ(fill_buckets({4, 6, 1, 20, 3, 7}, 10, BucketRule::never_exceed), (Groups{{0, 1}, {2}, {3}, {4, 5}}));
  const auto many = fill_buckets(std::vector<Bytes>(kMostTensors + 1, 1), MiB(25), BucketRule::never_exceed);
  ASSERT_EQ(many.size(), 2u);
  EXPECT_EQ(many[1].size(), 1u);
}

TEST(ZeroUnits, WithoutModulesUnitsAreBuckets) {
  LayerShape shape;
  shape.modules = false;
  shape.parameter_bytes.assign(6, 4096);
  const Trace trace = layer_trace(shape);
  const Dataflow flow(trace);
  ZeroSettings settings;
  settings.stage = 3;
  settings.bucket = 8192;
  const GatherPlan plan = plan_gathers(trace, analyze_for_zero(trace, flow, 3), settings);
  EXPECT_EQ(plan.units, 3u);
  ASSERT_EQ(plan.executions.size(), 6u);  // each in forward and in backward
  for (const UnitExecution& execution : plan.executions) EXPECT_EQ(execution.parameters.size(), 2u);
  EXPECT_EQ(plan.executions[0].unit, plan.executions[5].unit);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
