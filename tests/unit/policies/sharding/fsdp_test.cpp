// Does fsdp do what PyTorch's fully_shard does: which collectives in which order, which buffers live when, and what
// waits for what?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "policies/sharding/fsdp_hooks.h"
#include "policies/sharding/fsdp_units.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "sim/trace/process_group.h"
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

std::string fsdp(int ranks, const std::string& more = "") {
  return "fsdp:ranks=" + std::to_string(ranks) + ",hook_us=0" + more;
}

Bytes sent(const Trace& trace, CollectiveKind kind) {
  Bytes bytes = 0;
  for (const Op& op : trace.ops)
    if (op.kind == OpKind::collective && op.collective == kind) bytes += op.bytes;
  return bytes;
}

// "G" a gather, "S" a reduce-scatter, "R" an all-reduce; with the module beside which it stands: "G0 G1 S1".
std::string collectives(const Trace& trace) {
  std::string text;
  for (const Op& op : trace.ops) {
    if (op.kind != OpKind::collective) continue;
    if (!text.empty()) text += ' ';
    text += op.collective == CollectiveKind::all_gather       ? 'G'
            : op.collective == CollectiveKind::reduce_scatter ? 'S'
                                                              : 'R';
    text += std::to_string(op.bytes);
  }
  return text;
}

// Of storages of that label: how many live at most at once, and how many bytes.
struct MostAlive {
  int count = 0;
  Bytes bytes = 0;
};

MostAlive most_alive(const Trace& trace, const std::string& label) {
  MostAlive most, now;
  for (const Op& op : trace.ops) {
    if (op.kind != OpKind::alloc && op.kind != OpKind::free) continue;
    const Storage& s = trace.storages[op.target];
    if (trace.strings[s.label] != label) continue;
    now.count += op.kind == OpKind::alloc ? 1 : -1;
    now.bytes += op.kind == OpKind::alloc ? s.bytes : -s.bytes;
    most.count = std::max(most.count, now.count);
    most.bytes = std::max(most.bytes, now.bytes);
  }
  return most;
}

Bytes most_of(const Trace& trace, StorageKind kind) {
  Bytes most = 0;
  for (const LiveBytes& live : live_bytes(trace)) most = std::max(most, of(live, kind));
  return most;
}

std::size_t first_update(const Trace& trace) {
  std::size_t i = 0;
  while (trace.strings[trace.ops[i].operator_name].find("adam") == std::string::npos) ++i;
  return i;
}

Duration span(const Trace& trace, const Machine& machine) {
  SimulationOptions options;
  options.allocator = "ideal";
  return simulate(trace, machine, options).gpu_span;
}

void expect_refusal(const Trace& trace, const std::string& policy, const std::string& part) {
  try {
    rewritten_by(trace, {policy});
    FAIL() << policy << " must be refused";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

LayerShape layers(std::size_t count, Bytes bytes) {
  LayerShape shape;
  shape.parameter_bytes.assign(count, bytes);
  return shape;
}

// ---- what lives ----

// The fp32 copy that the optimizer keeps of 16-bit parameters is what is sharded, so 4 + 8 bytes per parameter, and 4
// of gradients once they are reduced: 16 over N.
TEST(Fsdp2, AtRestEverythingIsAShardInFp32) {
  const GptShape shape;
  const Bytes P = parameter_count(shape), N = 8;
  ASSERT_EQ(P % N, 0);
  const Trace result = rewritten_by(gpt_step(shape), {fsdp(N)});
  EXPECT_EQ(of(live_bytes(result).front(), StorageKind::parameter), 4 * P / N);
  EXPECT_EQ(model_state(live_bytes(result).front()), 12 * P / N);
  EXPECT_EQ(model_state(live_bytes(result)[first_update(result)]), 16 * P / N);
}

// Without such copies in the parameters' own type, and so their gradients: 2 + 12 and 2 bytes.
TEST(Fsdp2, AtRestEverythingIsAShardInItsOwnType) {
  const Trace result = rewritten_by(layer_trace(layers(4, 4096)), {fsdp(8)});
  constexpr Bytes P = 4 * 2048;
  EXPECT_EQ(model_state(live_bytes(result).front()), 14 * P / 8);
  EXPECT_EQ(model_state(live_bytes(result)[first_update(result)]), 16 * P / 8);
}

// Of 5 rows of 3 elements over 4 ranks, rank 0 keeps 2 rows; a tensor without a shape is cut by elements.
TEST(Fsdp2, TensorsAreCutAlongTheirFirstDimension) {
  Trace trace = layer_trace(layers(2, 30));
  for (Storage& s : trace.storages)
    if (s.kind == StorageKind::parameter && trace.strings[s.label] == "layers.0") s.shape = trace.shapes.intern({5, 3});
  const Trace result = rewritten_by(trace, {fsdp(4)});
  EXPECT_EQ(of(live_bytes(result).front(), StorageKind::parameter), 2 * 3 * 2 + 4 * 2);
  EXPECT_EQ(most_alive(result, "fsdp.all_gather_output").bytes, 4 * (2 * 3 * 2 + 4 * 2));
}

// The buffer of a unit is held until the next unit has its own: two at most, without the host ever waiting.
TEST(Fsdp2, AtMostTwoGatherBuffersLive) {
  const Trace result = rewritten_by(layer_trace(layers(6, 4096)), {fsdp(4)});
  EXPECT_EQ(most_alive(result, "fsdp.all_gather_output").count, 2);
  EXPECT_EQ(most_alive(result, "fsdp.reduce_scatter_input").count, 1);
  // In backward the unit's own parameters and those gathered one ahead; shards of all six.
  EXPECT_EQ(most_of(result, StorageKind::parameter), 6 * 1024 + 4096);
  for (const Op& op : result.ops) EXPECT_NE(op.kind, OpKind::synchronize);
}

// Three sizes of a unit besides the shards, in two pools: two buffers of the copy-in stream's, parameters in compute's.
TEST(Fsdp2, ForwardTakesThreeUnitsInTwoPools) {
  const Trace result = rewritten_by(layer_trace(layers(6, 4096)), {fsdp(4)});
  std::map<std::string, Bytes> now, most;
  for (const Op& op : result.ops) {
    if (op.phase == Phase::backward) break;
    if (op.kind != OpKind::alloc && op.kind != OpKind::free) continue;
    const Storage& s = result.storages[op.target];
    if (s.kind == StorageKind::activation) continue;
    Bytes& pool = now[result.streams[s.stream].name];
    pool += op.kind == OpKind::alloc ? s.bytes : -s.bytes;
    most[result.streams[s.stream].name] = std::max(most[result.streams[s.stream].name], pool);
  }
  EXPECT_EQ(most["fsdp.all_gather_copy_in"], 2 * 4096);
  EXPECT_EQ(most["compute"], 4096);
}

// What is asked for ahead in forward lives beside the parameters of the unit that computes.
TEST(Fsdp2, ExplicitForwardPrefetchHoldsOneMoreBuffer) {
  const Trace trace = layer_trace(layers(6, 4096));
  EXPECT_EQ(most_alive(rewritten_by(trace, {fsdp(4, ",forward_ahead=1")}), "fsdp.all_gather_output").count, 2);
  EXPECT_EQ(most_alive(rewritten_by(trace, {fsdp(4, ",forward_ahead=2")}), "fsdp.all_gather_output").count, 3);
  EXPECT_EQ(most_alive(rewritten_by(trace, {fsdp(4, ",backward_ahead=0")}), "fsdp.all_gather_output").count, 2);
}

TEST(Fsdp2, WithoutReshardingAllUnitsStayWholeUntilTheirBackward) {
  const Trace trace = layer_trace(layers(6, 4096));
  EXPECT_EQ(most_of(rewritten_by(trace, {fsdp(4, ",reshard_after_forward=0")}), StorageKind::parameter),
            6 * 1024 + 6 * 4096);
  EXPECT_EQ(most_of(rewritten_by(trace, {fsdp(4, ",reshard_after_forward=1")}), StorageKind::parameter),
            6 * 1024 + 4096);
  // Over two of the four ranks: half of each, which is given back once it is whole again.
  EXPECT_EQ(most_of(rewritten_by(trace, {fsdp(4, ",reshard_after_forward=2")}), StorageKind::parameter),
            6 * 1024 + 6 * 2048 + 4096);
}

// ---- which collectives ----

// 1024, 2048 and 4096 bytes over 4 ranks: a rank sends 768, 1536 and 3072. In forward each unit as the host comes to
// it; in backward the last at once, each other one while the one behind it computes.
TEST(Fsdp2, CollectivesInOrder) {
  const Trace trace = layer_trace({});
  EXPECT_EQ(collectives(rewritten_by(trace, {fsdp(4)})), "G768 G1536 G3072 G3072 G1536 S3072 G768 S1536 S768");
  EXPECT_EQ(collectives(rewritten_by(trace, {fsdp(4, ",backward_ahead=0")})),
            "G768 G1536 G3072 G3072 S3072 G1536 S1536 G768 S768");
  EXPECT_EQ(collectives(rewritten_by(trace, {fsdp(4, ",backward_ahead=2")})),
            "G768 G1536 G3072 G3072 G1536 G768 S3072 S1536 S768");
  EXPECT_EQ(collectives(rewritten_by(trace, {fsdp(4, ",reshard_after_forward=0")})),
            "G768 G1536 G3072 S3072 S1536 S768");
  // torchtitan's last unit: backward begins with it.
  EXPECT_EQ(collectives(rewritten_by(trace, {fsdp(4, ",keep=layers.2")})),
            "G768 G1536 G3072 G1536 S3072 G768 S1536 S768");
  expect_refusal(trace, fsdp(4, ",keep=layers.9"), "keep=layers.9 names none of the 3 units");
  // Backward's over two ranks: half of the whole.
  EXPECT_EQ(collectives(rewritten_by(trace, {fsdp(4, ",reshard_after_forward=2")})),
            "G768 G1536 G3072 G2048 G1024 S3072 G512 S1536 S768");
}

// The root, which holds what no block does, is gathered once and reduced at the end of backward; in fp32, as the
// optimizer's copies of the parameters are.
TEST(Fsdp2, TheRootIsGatheredFirstAndReducedLast) {
  GptShape shape;
  shape.layers = 2;
  const Bytes h = shape.hidden, N = 4, block = 2 * (12 * h * h + 13 * h) / N * (N - 1);
  const Bytes root = 2 * ((shape.vocabulary + shape.sequence) * h + 2 * h) / N * (N - 1);
  const std::string b = std::to_string(block), r = std::to_string(root), wide = std::to_string(2 * block);
  EXPECT_EQ(collectives(rewritten_by(gpt_step(shape), {fsdp(N)})), "G" + r + " G" + b + " G" + b + " G" + b + " G" + b +
                                                                       " S" + wide + " S" + wide + " S" +
                                                                       std::to_string(2 * root));
  // Over all ranks the root is gathered for backward, too.
  EXPECT_EQ(collectives(rewritten_by(gpt_step(shape), {fsdp(N, ",reshard_after_forward=1")})),
            "G" + r + " G" + b + " G" + b + " G" + r + " G" + b + " G" + b + " S" + wide + " S" + wide + " S" +
                std::to_string(2 * root));
}

// Gathers in the parameters' 2 bytes, reductions in 4: torchtitan's 2 + 2 + 4 bytes per parameter.
TEST(Fsdp2, ReducesInItsOwnType) {
  const Trace trace = layer_trace({});
  const Bytes P = 1024 + 2048 + 4096, N = 4;
  const Trace result = rewritten_by(trace, {fsdp(N, ",reduce_dtype=fp32")});
  EXPECT_EQ(sent(result, CollectiveKind::all_gather), 2 * P / N * (N - 1));
  EXPECT_EQ(sent(result, CollectiveKind::reduce_scatter), 2 * P / N * (N - 1));
  EXPECT_EQ(of(live_bytes(result)[first_update(result)], StorageKind::gradient), P / N);
}

// fp16 could overflow: divided by 4 and, behind the sum over 8 ranks, by 2.
TEST(Fsdp2, SumsInFp16AreDividedByKernels) {
  const auto divisions = [](const Trace& t) {
    return std::ranges::count_if(t.ops, [&](const Op& op) { return t.strings[op.name] == "fsdp.div_"; });
  };
  EXPECT_EQ(divisions(rewritten_by(layer_trace({}), {fsdp(8, ",reduce_dtype=fp16")})), 2 * 3);
  EXPECT_EQ(divisions(rewritten_by(layer_trace({}), {fsdp(8, ",reduce_dtype=bf16")})), 0);
}

TEST(Fsdp2, AccumulationReducesEachPassOrTheLast) {
  LayerShape shape;
  shape.passes = 3;
  const Trace trace = layer_trace(shape);
  const Bytes P = 1024 + 2048 + 4096, N = 4, part = P / N * (N - 1);
  const Trace each = rewritten_by(trace, {fsdp(N)}), last = rewritten_by(trace, {fsdp(N, ",accumulation=no_sync")});
  EXPECT_EQ(sent(each, CollectiveKind::all_gather), 3 * 2 * part);
  EXPECT_EQ(sent(each, CollectiveKind::reduce_scatter), 3 * part);
  EXPECT_EQ(sent(last, CollectiveKind::all_gather), 3 * 2 * part);
  EXPECT_EQ(sent(last, CollectiveKind::reduce_scatter), part);
  // Whole gradients from the first pass on, where the last one reduces; in the reduce type.
  EXPECT_LE(most_of(each, StorageKind::gradient), P / N + 4096 + 2048);
  EXPECT_EQ(most_of(last, StorageKind::gradient), P);
  const Trace wide = rewritten_by(trace, {fsdp(N, ",accumulation=no_sync,reduce_dtype=fp32")});
  EXPECT_EQ(most_of(wide, StorageKind::gradient), 2 * P + 4096);
  for (const Trace* result : {&each, &last, &wide}) {
    EXPECT_EQ(of(live_bytes(*result)[first_update(*result)], StorageKind::gradient), P / N);
    EXPECT_EQ(of(live_bytes(*result).back(), StorageKind::communication_buffer), 0);
  }
}

// HSDP: gathers and reduce-scatters within 4 ranks, and each shard is summed over 2 replicas: 2 (R-1)/R of it.
TEST(Fsdp2, ReplicasSumTheirShards) {
  const Trace result = rewritten_by(layer_trace({}), {fsdp(8, ",replicate=2")});
  EXPECT_EQ(collectives(result), "G768 G1536 G3072 G3072 G1536 S3072 R1024 G768 S1536 R512 S768 R256");
  EXPECT_EQ(result.ranks, 8u);
  ASSERT_EQ(result.groups.size(), 2u);
  EXPECT_EQ(result.groups[0].members, (std::vector<std::uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(result.groups[1].members, (std::vector<std::uint32_t>{0, 4}));
  EXPECT_EQ(of(live_bytes(result).front(), StorageKind::parameter), (1024 + 2048 + 4096) / 4);
}

// Between forward and backward over two ranks: the gathers of forward and the reductions are still those of all.
TEST(Fsdp2, ShardsOfForwardAreSharedByFewerRanks) {
  const Trace result = rewritten_by(layer_trace({}), {fsdp(8, ",reshard_after_forward=2")});
  std::vector<std::uint32_t> ranks;
  for (const Op& op : result.ops)
    if (op.kind == OpKind::collective) ranks.push_back(process_group_of(result, op).ranks);
  EXPECT_EQ(ranks, (std::vector<std::uint32_t>{8, 8, 8, 2, 2, 8, 2, 8, 8}));
}

// Three passes of which the last sums over replicas: what they leave is kept as it is reduced, and added on the way.
TEST(Fsdp2, PartialSumsAreKeptInTheReduceType) {
  LayerShape shape;
  shape.passes = 3;
  const Trace trace = layer_trace(shape);
  const std::string hsdp = ",replicate=2,reduce_dtype=fp32";
  const Trace each = rewritten_by(trace, {fsdp(8, hsdp)}),
              last = rewritten_by(trace, {fsdp(8, hsdp + ",accumulation=no_all_reduce")});
  EXPECT_EQ(check(last), std::vector<std::string>{});
  EXPECT_EQ(races(last), std::vector<std::string>{});
  EXPECT_EQ(sent(last, CollectiveKind::reduce_scatter), sent(each, CollectiveKind::reduce_scatter));
  EXPECT_EQ(3 * sent(last, CollectiveKind::all_reduce), sent(each, CollectiveKind::all_reduce));
  constexpr Bytes P = 1024 + 2048 + 4096;
  EXPECT_EQ(most_alive(last, "fsdp.reduce_scatter_output").count, 3 + 1) << "of three units, and of the one that adds";
  EXPECT_EQ(most_alive(last, "fsdp.reduce_scatter_output").bytes, 2 * P / 4 + 2 * 4096 / 4);
  EXPECT_EQ(of(live_bytes(last)[first_update(last)], StorageKind::communication_buffer), 0);
  EXPECT_EQ(of(live_bytes(last)[first_update(last)], StorageKind::gradient), P / 4);
  expect_refusal(trace, fsdp(8, ",accumulation=no_all_reduce"), "is for version 2 with replicas");
}

// As torchtitan does under pipelines: gathered once and reduced once per step, however many passes it has.
TEST(Fsdp2, ParametersMayStayWholeFromPassToPass) {
  LayerShape shape;
  shape.passes = 3;
  const Trace result = rewritten_by(
      layer_trace(shape), {fsdp(4, ",reshard_after_forward=0,reshard_after_backward=0,accumulation=no_sync")});
  EXPECT_EQ(collectives(result), "G768 G1536 G3072 S3072 S1536 S768");
  EXPECT_EQ(races(result), std::vector<std::string>{});
  EXPECT_EQ(of(live_bytes(result)[first_update(result)], StorageKind::parameter), (1024 + 2048 + 4096) / 4);
}

TEST(Fsdp2, UnitsAreTheModulesThatPatternsName) {
  const GptShape shape;
  const Trace trace = gpt_step(shape);
  const auto count = [&](const std::string& more) {
    const Trace result = rewritten_by(trace, {fsdp(4, more)});
    return std::ranges::count_if(result.ops,
                                 [](const Op& op) { return op.collective == CollectiveKind::reduce_scatter; });
  };
  EXPECT_EQ(count(""), shape.layers + 1);
  EXPECT_EQ(count(",units=layers.*"), shape.layers + 1);
  EXPECT_EQ(count(",units=layers.*.mlp"), shape.layers + 1);
  EXPECT_EQ(count(",units=layers.*+layers.*.mlp"), 2 * shape.layers + 1);
  EXPECT_EQ(count(",units=embedding"), 1) << "the output layer shares its weight: the root holds both";
  expect_refusal(trace, fsdp(4, ",units=blocks.*"), "units=blocks.* is no module");
}

// ---- what waits for what ----

TEST(Fsdp2, EverySettingLeavesASoundTrace) {
  for (const bool preexisting : {false, true})
    for (const char* more :
         {"", ",reshard_after_forward=0", ",reshard_after_forward=1", ",reshard_after_forward=2", ",forward_ahead=1",
          ",forward_ahead=2", ",backward_ahead=0", ",backward_ahead=3", ",reduce_dtype=fp32", ",offload=cpu",
          ",offload=cpu,replicate=2,reduce_dtype=fp32", ",replicate=2", ",replicate=2,reduce_dtype=fp32",
          ",units=layers.*+layers.*.mlp", ",units=layers.*.attention,reshard_after_forward=2"}) {
      GptShape shape;
      shape.layers = 3;
      shape.steps = 2;
      shape.preexisting_gradients = preexisting;
      const Trace trace = gpt_step(shape);
      const Trace result = rewritten_by(trace, {fsdp(4, more)});
      EXPECT_EQ(check(result), std::vector<std::string>{}) << more;
      EXPECT_EQ(races(result), std::vector<std::string>{}) << more << preexisting;
      EXPECT_EQ(of(live_bytes(result).back(), StorageKind::communication_buffer), 0) << more;
      EXPECT_EQ(result.steps.size(), 2u);
    }
}

TEST(Fsdp2, WithoutOneOfItsWaitsThereIsARace) {
  LayerShape shape;
  shape.steps = 2;
  const Trace result = rewritten_by(layer_trace(shape), {fsdp(4, ",reduce_dtype=fp32")});
  ASSERT_EQ(races(result), std::vector<std::string>{});
  int waits = 0, needed = 0;
  for (OpId id = 0; id < result.ops.size(); ++id) {
    if (result.ops[id].kind != OpKind::event_wait) continue;
    Trace broken = result;
    broken.ops[id] = Op{};
    ++waits;
    needed += !races(broken).empty();
  }
  EXPECT_GE(2 * needed, waits) << needed << " of " << waits;
}

// Three units of 1.6 MB over 16 ranks at 10 GB/s, on a fabric without links of its own, so that collectives don't slow
// each other. A gather or reduce-scatter takes 150 us, the copy in 0.2 us (0.4 beside a kernel that needs all of HBM),
// the copy out and the chunk-cat 3.2 us, kernels 1 us, updates 1/16 us.
// Forward: gathers 0.2..150.2..300.2..450.2 (each asked for while the one before is under way), copied out at 453.4.
// Backward: copy in beside forward's last kernel, gather 453.8..603.8, copied out 607.0, loss and backward until 609.0,
// chunk-cat until 612.2, reduce-scatter until 762.2; the next gather 607.2..757.2, copied out 760.4, backward, waits
// for 762.2, chunk-cat 765.4, reduce-scatter until 915.4; the next gather 760.8..910.8, copied out 914.0, backward
// 915.0, waits for 915.4, chunk-cat 918.6, reduce-scatter until 1068.6; then three updates.
TEST(Fsdp2, TimesOfASmallStepByHand) {
  Trace trace = layer_trace(layers(3, 1'600'000));
  trace.constants.event_latency = Duration{0};
  const Machine machine = test_machine();
  EXPECT_EQ(span(rewritten_by(trace, {fsdp(16)}), machine), nanoseconds(1'068'600) + picoseconds(3 * 62'500));
}

// A gather of forward begins behind the copy out of the unit before the last: a host that comes late delays it, too.
TEST(Fsdp2, HooksCostTheHostAndCanBindTheStep) {
  const Trace trace = layer_trace(layers(6, 4096));
  const Machine machine = test_machine();
  const Duration free = span(rewritten_by(trace, {fsdp(4)}), machine);
  const Duration slow = span(rewritten_by(trace, {"fsdp:ranks=4,hook_us=500"}), machine);
  // Six units have four hooks each; the first is before the first kernel.
  EXPECT_GE(slow, microseconds(500) * (6 * 4 - 2));
  EXPECT_GT(slow, free);
}

// ---- clipping ----

Bytes norm_bytes(const Trace& trace) {
  for (const Storage& storage : trace.storages)
    if (trace.strings[storage.label] == "fsdp.norm") return storage.bytes;
  return 0;
}

// A number per gradient, in its type, over the ranks that share the parameters, between two kernels over the rank's
// shards, before the update; version 1 one number.
TEST(Fsdp2, ClippingSumsNormsOverTheShards) {
  const Trace trace = layer_trace({});
  for (const char* more : {"", ",replicate=2"}) {
    const Trace plain = rewritten_by(trace, {fsdp(8, more)}),
                clipped = rewritten_by(trace, {fsdp(8, more + std::string(",clip_grad_norm=1"))});
    EXPECT_EQ(check(clipped), std::vector<std::string>{});
    EXPECT_EQ(races(clipped), std::vector<std::string>{});
    EXPECT_EQ(norm_bytes(clipped), 3 * 2);
    const Bytes ranks = *more == 0 ? 8 : 4;
    EXPECT_EQ(sent(clipped, CollectiveKind::all_reduce),
              sent(plain, CollectiveKind::all_reduce) + 2 * (3 * 2 / ranks) * (ranks - 1));
    std::vector<std::string> names;
    for (const Op& op : clipped.ops)
      if (runs_on_device(op.kind) && op.phase == Phase::optimizer) names.push_back(clipped.strings[op.name]);
    EXPECT_EQ(names, (std::vector<std::string>{"fsdp.foreach_norm", "fsdp.all_reduce_norm", "fsdp.foreach_mul_", "adam",
                                               "adam", "adam"}));
  }
  EXPECT_EQ(norm_bytes(rewritten_by(trace, {fsdp(8, ",version=1,clip_grad_norm=1")})), 4);
  expect_refusal(trace, fsdp(8, ",clip_grad_norm=1,offload=cpu"), "not implemented");
}

// The last backward pass before the update may be of a loss that reaches no parameter (a penalty on inputs), or of some
// alone: the norm is of what all passes since the last update have left.
TEST(Fsdp2, ClippingKnowsGradientsOfEarlierPasses) {
  for (const std::size_t untouched : {2, 3}) {  // of three layers, whose gradients the second pass does not change
    LayerShape shape;
    shape.passes = 2;
    Trace trace = layer_trace(shape);
    std::size_t backward = 0;
    const StorageId input = 0;
    std::set<StorageId> kept;
    for (const Op& op : trace.ops) {
      const bool runs_backward = trace.strings[op.name] == "linear_backward" && ++backward > 3;
      for (std::size_t u = op.first_use; u < op.first_use + op.use_count; ++u) {
        Use& use = trace.uses[u];
        if (kept.contains(use.storage)) use.version = 1;
        if (!runs_backward || backward > 3 + untouched) continue;
        if (trace.storages[use.storage].kind != StorageKind::gradient) continue;
        kept.insert(use.storage);
        use = {input, 0, Access::read};
      }
    }
    ASSERT_EQ(check(trace), std::vector<std::string>{});
    for (const char* more : {"", ",accumulation=no_sync", ",version=1"}) {
      const Trace clipped = rewritten_by(trace, {fsdp(8, more + std::string(",clip_grad_norm=1"))});
      EXPECT_EQ(check(clipped), std::vector<std::string>{});
      EXPECT_EQ(races(clipped), std::vector<std::string>{});
      EXPECT_EQ(norm_bytes(clipped), more == std::string(",version=1") ? 4 : 3 * 2) << more << " " << untouched;
    }
  }
}

// A step that computes its norm has the rest of clipping, too.
TEST(Fsdp2, AStepsOwnNormIsSummed) {
  Trace trace = layer_trace({});
  const auto update = std::ranges::find_if(trace.ops, [](const Op& op) { return op.phase == Phase::optimizer; });
  ASSERT_NE(update, trace.ops.end());
  update->operator_name = trace.strings.intern("aten::_foreach_norm");
  const Trace result = rewritten_by(trace, {fsdp(4)});
  EXPECT_EQ(norm_bytes(result), 3 * 2);
  EXPECT_EQ(sent(result, CollectiveKind::all_reduce), 2 * 1 * 3);
  EXPECT_EQ(
      std::ranges::count_if(result.ops, [&](const Op& op) { return result.strings[op.name] == "fsdp.foreach_mul_"; }),
      0);
}

// ---- offload ----

// 14 bytes per parameter over N are the host's; each shard goes up for forward and for backward, each gradient down
// once.
TEST(Fsdp2, CpuOffloadKeepsShardsOnTheHost) {
  const Trace trace = layer_trace({});
  const Bytes P = 1024 + 2048 + 4096, N = 4;
  const Trace result = rewritten_by(trace, {fsdp(N, ",offload=cpu")});
  EXPECT_EQ(check(result), std::vector<std::string>{});
  EXPECT_EQ(races(result), std::vector<std::string>{});
  Bytes up = 0, down = 0, on_device = 0, on_host = 0, cpu = 0;
  for (const Op& op : result.ops) {
    if (op.kind == OpKind::copy) (result.places[op.to] == "host" ? down : up) += op.bytes;
    if (op.kind == OpKind::host_work) cpu += op.bytes;
    EXPECT_FALSE(op.kind == OpKind::kernel && op.phase == Phase::optimizer);
  }
  for (const Storage& s : result.storages)
    if (s.preexisting && s.kind != StorageKind::input)
      (result.places[s.place] == "host" ? on_host : on_device) += s.bytes;
  EXPECT_EQ(up, 2 * P / N);
  EXPECT_EQ(down, P / N);
  EXPECT_EQ(on_device, 0);
  EXPECT_EQ(on_host, 7 * P / N);
  // Adam reads a gradient, a parameter and three states of twice its size, and writes all but the gradient.
  EXPECT_EQ(cpu, (2 + 6 + 1 + 6) * P / N);
}

// Page-locked memory is copied beside everything else, and the host waits once per unit at the end of backward;
// pageable memory makes it wait for each copy, and so do gradients that are added to those of an earlier pass.
TEST(Fsdp2, TheHostWaitsForGradientsAndPageableMemory) {
  LayerShape shape;
  shape.passes = 2;
  const auto waits = [](const Trace& t) {
    int events = 0, copies = 0, additions = 0;
    for (const Op& op : t.ops) {
      events += op.kind == OpKind::synchronize && op.wait_for == WaitFor::event;
      copies += op.kind == OpKind::copy && op.wait_for == WaitFor::own_op;
      additions += op.kind == OpKind::host_work && op.phase == Phase::backward;
    }
    return std::vector<int>{events, copies, additions};
  };
  EXPECT_EQ(waits(rewritten_by(layer_trace({}), {fsdp(4, ",offload=cpu")})), (std::vector<int>{3, 0, 0}));
  EXPECT_EQ(waits(rewritten_by(layer_trace(shape), {fsdp(4, ",offload=cpu")})), (std::vector<int>{3, 3, 3}));
  EXPECT_EQ(waits(rewritten_by(layer_trace({}), {fsdp(4, ",offload=cpu,pin_memory=0")})),
            (std::vector<int>{0, 6 + 3, 0}));
  EXPECT_EQ(waits(rewritten_by(layer_trace({}), {"fsdp:version=1,ranks=4,hook_us=0,offload=cpu,limit_all_gathers=0"})),
            (std::vector<int>{3, 0, 0}));
}

// ---- composition and refusals ----

// A unit is gathered before its backward begins, hence before its re-run, and both share the gather; a re-run of
// several units gathers all but the last once more, each time with all that brings its buffer together.
TEST(Fsdp2, ReRunsFindTheirParameters) {
  GptShape shape;
  shape.layers = 4;
  const Trace trace = gpt_step(shape);
  const Bytes h = shape.hidden, N = 4, block = 2 * (12 * h * h + 13 * h) / N * (N - 1);
  const Bytes plain = sent(rewritten_by(trace, {fsdp(N)}), CollectiveKind::all_gather);
  for (const auto& [checkpoint, extra] : std::map<std::string, Bytes>{
           {"checkpoint:mode=full", 0}, {"checkpoint:every=2", 2 * block}, {"checkpoint:every=4", 3 * block}}) {
    const Trace result = rewritten_by(trace, {fsdp(N), checkpoint});
    EXPECT_EQ(sent(result, CollectiveKind::all_gather), plain + extra) << checkpoint;
    EXPECT_EQ(check(result), std::vector<std::string>{}) << checkpoint;
    EXPECT_EQ(races(result), std::vector<std::string>{}) << checkpoint;
    EXPECT_EQ(of(live_bytes(result).back(), StorageKind::communication_buffer), 0) << checkpoint;
    // The step's own re-runs take as many.
    const Trace before = rewritten_by(rewritten_by(trace, {checkpoint}), {fsdp(N)});
    EXPECT_EQ(sent(before, CollectiveKind::all_gather), plain + extra) << checkpoint;
    EXPECT_EQ(races(before), std::vector<std::string>{}) << checkpoint;
    const auto hashes = producer_hashes(result);
    for (OpId id = 0; id < result.ops.size(); ++id)
      if (result.ops[id].source != kNoOp && hashes[id] != 0) {
        EXPECT_EQ(hashes[id], hashes[result.ops[id].source]) << checkpoint;
      }
  }
}

TEST(Fsdp2, RefusesWhatFullyShardRefuses) {
  const Trace trace = layer_trace({});
  Trace mixed = trace;
  for (Storage& s : mixed.storages)
    if (s.kind == StorageKind::parameter && s.bytes == 1024) s.shape = mixed.shapes.intern({256});
  EXPECT_NO_THROW(rewritten_by(mixed, {fsdp(8)})) << "each in a unit of its own";
  for (Op& op : mixed.ops)
    if (op.module != 0) op.module = mixed.strings.intern("network");
  expect_refusal(mixed, fsdp(8), "shards parameters of one type per unit");
  expect_refusal(trace, "fsdp:ranks=8,strategy=full", "strategy=full is no setting of version 2");
  expect_refusal(trace, fsdp(8, ",reshard_after_forward=3"), "no factor of the 8 ranks");
  expect_refusal(trace, fsdp(8, ",replicate=3"), "does not divide ranks=8");
  expect_refusal(trace, fsdp(8, ",replicate=8"), "two ranks or more");
  expect_refusal(trace, "fsdp:version=3,ranks=8", "version=3");
  LayerShape shape;
  shape.modules = false;
  expect_refusal(layer_trace(shape), fsdp(8), "modules");
  shape.modules = true;
  shape.optimizer = false;
  expect_refusal(layer_trace(shape), fsdp(8), "Policy 'fsdp' cannot split trace 'layers': it has no optimizer step");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
