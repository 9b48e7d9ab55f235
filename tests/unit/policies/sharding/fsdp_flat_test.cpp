// Does fsdp:version=1 do what FullyShardedDataParallel does: flat parameters, late frees, a host that waits?
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/workload/import/mwc/mwc_import.h"
#include "policies/sharding/fsdp_flat.h"
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

Trace sharded(const Trace& trace, const std::string& more = "", const std::string& second = "") {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  std::vector<PolicySpec> specs{parse_policy("fsdp:version=1,hook_us=0" + more)};
  if (!second.empty()) specs.push_back(parse_policy(second));
  return apply_rewriters(trace, specs, machine, *pricer);
}

LayerShape layers(std::size_t count, Bytes bytes) {
  LayerShape shape;
  shape.parameter_bytes.assign(count, bytes);
  return shape;
}

// "G" a gather, "S" a reduce-scatter, "R" an all-reduce, with the bytes that a rank sends; "|": the host waits.
std::string program(const Trace& trace) {
  std::string text;
  for (const Op& op : trace.ops) {
    if (op.kind == OpKind::synchronize) text += "| ";
    if (op.kind != OpKind::collective) continue;
    text += op.collective == CollectiveKind::all_gather       ? 'G'
            : op.collective == CollectiveKind::reduce_scatter ? 'S'
                                                              : 'R';
    text += std::to_string(op.bytes) + " ";
  }
  return text;
}

std::size_t named(const Trace& trace, const std::string& name) {
  return static_cast<std::size_t>(
      std::ranges::count_if(trace.ops, [&](const Op& op) { return trace.strings[op.name] == name; }));
}

Bytes most_of(const Trace& trace, StorageKind kind) {
  Bytes most = 0;
  for (const LiveBytes& live : live_bytes(trace)) most = std::max(most, of(live, kind));
  return most;
}

void expect_refusal(const Trace& trace, const std::string& more, const std::string& part) {
  try {
    sharded(trace, more);
    FAIL() << more << " must be refused";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

// Frees are queued behind forward of 0 and 1, so that the gather of 2 waits for the first; from there on each gather
// that follows a free finds two again. In backward the last unit and, before it computes, the next one are gathered
// behind one free.
TEST(Fsdp1, TheHostWaitsWhereTwoFreesAreQueued) {
  const Trace trace = layer_trace(layers(4, 4096));
  EXPECT_EQ(program(sharded(trace, ",ranks=4")),
            "G3072 G3072 | G3072 | G3072 | G3072 G3072 S3072 | G3072 S3072 | G3072 S3072 S3072 ");
  EXPECT_EQ(program(sharded(trace, ",ranks=4,limit_all_gathers=0")),
            "G3072 G3072 G3072 G3072 G3072 G3072 S3072 G3072 S3072 G3072 S3072 S3072 ");
}

// Allocations and frees before the first step, as "label+bytes" and "label-bytes".
std::string wrapped(const Trace& trace) {
  std::string text;
  for (OpId id = 0; id < trace.steps.front().first; ++id) {
    const Op& op = trace.ops[id];
    EXPECT_TRUE(op.kind == OpKind::alloc || op.kind == OpKind::free);
    const Storage& storage = trace.storages[op.target];
    text += trace.strings[storage.label].substr(5) + (op.kind == OpKind::alloc ? '+' : '-') +
            std::to_string(storage.bytes) + " ";
  }
  return text;
}

// Unit by unit, each padded to four ranks; what is cut stays (on the GPU it is there already), on the host it is not.
TEST(Fsdp1, WrappingMovesJoinsAndCuts) {
  LayerShape shape;
  shape.parameter_bytes = {1024, 4098};
  const Trace trace = layer_trace(shape);
  EXPECT_EQ(wrapped(sharded(trace, ",ranks=4")), "");
  EXPECT_EQ(wrapped(sharded(trace, ",ranks=4,wrapping=move")),
            "moved+1024 joined+1024 moved-1024 joined-1024 moved+4098 joined+4104 moved-4098 joined-4104 ");
  EXPECT_EQ(wrapped(sharded(trace, ",ranks=4,wrapping=sync,offload=cpu")),
            "moved+1024 broadcast+1024 broadcast-1024 joined+1024 moved-1024 cut+256 cut-256 joined-1024 "
            "moved+4098 broadcast+4098 broadcast-4098 joined+4104 moved-4098 cut+1026 cut-1026 joined-4104 ");
}

// PyTorch's bucket has 250 MiB, and one parameter may be larger than that.
TEST(Fsdp1, WrappingBroadcastsABucketAtATime) {
  LayerShape shape;
  shape.parameter_bytes = {1024, MiB(200), MiB(50), MiB(1), MiB(300)};
  std::string broadcasts;  // of the root, in MiB
  const Trace trace = sharded(layer_trace(shape), ",ranks=4,wrapping=sync,units=layers.0");
  for (OpId id = 0; id < trace.steps.front().first; ++id) {
    const Op& op = trace.ops[id];
    const Storage& storage = trace.storages[op.target];
    if (op.kind == OpKind::alloc && trace.strings[storage.label] == "fsdp.broadcast" && storage.bytes >= MiB(1))
      broadcasts += std::to_string(storage.bytes / MiB(1)) + " ";
  }
  EXPECT_EQ(broadcasts, "250 1 300 ");
}

TEST(Fsdp1, PrefetchDecidesWhenTheNextGatherLeaves) {
  const Trace trace = layer_trace({});
  const std::string free = ",ranks=4,limit_all_gathers=0";
  EXPECT_EQ(program(sharded(trace, free)), "G768 G1536 G3072 G3072 G1536 S3072 G768 S1536 S768 ");
  EXPECT_EQ(program(sharded(trace, free + ",backward_prefetch=post")),
            "G768 G1536 G3072 G3072 G1536 S3072 G768 S1536 S768 ");
  EXPECT_EQ(program(sharded(trace, free + ",backward_prefetch=none")),
            "G768 G1536 G3072 G3072 S3072 G1536 S1536 G768 S768 ");
  EXPECT_EQ(program(sharded(trace, free + ",strategy=grad_op")), "G768 G1536 G3072 S3072 S1536 S768 ");
  // One ahead: gathers leave before the unit in front of them computes, and its views of the flat parameter are made
  // there: in backward they give their gradient back behind that unit.
  EXPECT_EQ(program(sharded(trace, free + ",forward_prefetch=1")),
            "G768 G1536 G3072 G3072 G1536 G768 S3072 S1536 S768 ");
  const auto ops_before = [&](const std::string& more) {  // before the second gather
    const Trace result = sharded(trace, free + more);
    int gathers = 0, kernels = 0;
    for (const Op& op : result.ops) {
      gathers += op.collective == CollectiveKind::all_gather;
      if (gathers == 2) break;
      kernels += op.kind == OpKind::kernel && !op.added;
    }
    return kernels;
  };
  EXPECT_EQ(ops_before(""), 1);
  EXPECT_EQ(ops_before(",forward_prefetch=1"), 0);
}

TEST(Fsdp1, HybridStrategiesSumOverReplicas) {
  const Trace trace = layer_trace({});
  EXPECT_EQ(program(sharded(trace, ",ranks=8,replicate=2,limit_all_gathers=0")),
            "G768 G1536 G3072 G3072 G1536 S3072 R1024 G768 S1536 R512 S768 R256 ");
  EXPECT_EQ(program(sharded(trace, ",ranks=8,replicate=2,strategy=hybrid_grad_op")),
            "G768 G1536 G3072 S3072 R1024 S1536 R512 S768 R256 ");
}

// Three parameters of 5 elements in one unit: 15 over 4 ranks are padded to 16; each begins at 16 bytes (8 elements)
// with use_orig_params: 24.
TEST(Fsdp1, OneUnitIsFlatAndPaddedAtItsEnd) {
  LayerShape shape;
  shape.parameter_bytes = {10, 10, 10};
  Trace trace = layer_trace(shape);
  for (Op& op : trace.ops)
    if (op.module != 0) op.module = trace.strings.intern("network");
  const Trace result = sharded(trace, ",ranks=4");
  EXPECT_EQ(program(result), "G24 S24 ");
  EXPECT_EQ(of(live_bytes(result).front(), StorageKind::parameter), 4 * 2);
  EXPECT_EQ(most_of(result, StorageKind::parameter), 4 * 2 + 16 * 2);
  EXPECT_EQ(named(result, "fsdp.cat"), 1u);
  EXPECT_EQ(named(result, "fsdp.pad"), 1u);
  const Trace aligned = sharded(trace, ",ranks=4,use_orig_params=1");
  EXPECT_EQ(program(aligned), "G36 S36 ");
  EXPECT_EQ(named(aligned, "fsdp.pad"), 0u);
}

// The first power of two that does not divide the ranks, or is no smaller than its quotient.
TEST(Fsdp1, GradientsAreDividedBeforeAndAfterTheirSum) {
  for (const auto& [ranks, factor] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{
           {2, 2}, {3, 2}, {4, 2}, {6, 4}, {8, 4}, {16, 4}, {64, 8}, {96, 16}, {512, 32}})
    EXPECT_EQ(FlatReduction::predivide_factor(ranks), factor) << ranks;
  const Trace trace = layer_trace({});
  EXPECT_EQ(named(sharded(trace, ",ranks=2"), "fsdp.div_"), 3u) << "by 2, and then by 1";
  EXPECT_EQ(named(sharded(trace, ",ranks=8"), "fsdp.div_"), 6u);
}

// Freed parameters are in the pool of the unshard stream, and compute has yet to use them: their memory comes back when
// it has. A host that runs ahead of the device holds more of them without the limiter, three at most with it.
TEST(Fsdp1, MemoryComesBackWhenComputeHasUsedIt) {
  LayerShape shape = layers(8, 1'000'000);
  const Trace trace = layer_trace(shape);
  const Machine machine = test_machine();
  const auto peak = [&](const std::string& more) {
    SimulationOptions options;
    options.allocator = "ideal";
    return simulate(sharded(trace, ",ranks=8" + more), machine, options).tiers[0].peak_allocated;
  };
  const Bytes shards = 8 * 125'000;
  EXPECT_GE(peak(",limit_all_gathers=0"), shards + 8 * 1'000'000);
  EXPECT_LT(peak(""), peak(",limit_all_gathers=0") - 4 * 1'000'000);
}

TEST(Fsdp1, EverySettingLeavesASoundTrace) {
  for (const bool preexisting : {false, true})
    for (const char* more :
         {"", ",strategy=grad_op", ",backward_prefetch=post", ",backward_prefetch=none", ",forward_prefetch=1",
          ",limit_all_gathers=0", ",reduce_dtype=fp32", ",replicate=2", ",replicate=2,reduce_dtype=fp32",
          ",use_orig_params=1", ",offload=cpu", ",offload=cpu,reduce_dtype=fp32", ",units=layers.*+layers.*.mlp"}) {
      GptShape shape;
      shape.layers = 3;
      shape.steps = 2;
      shape.preexisting_gradients = preexisting;
      const Trace result = sharded(gpt_step(shape), std::string(",ranks=4") + more);
      EXPECT_EQ(check(result), std::vector<std::string>{}) << more;
      EXPECT_EQ(races(result), std::vector<std::string>{}) << more << preexisting;
      EXPECT_EQ(of(live_bytes(result).back(), StorageKind::communication_buffer), 0) << more;
      SimulationOptions options;
      EXPECT_TRUE(simulate(result, test_machine(), options).fits);
    }
}

// The late free is what keeps memory from being handed out too early.
TEST(Fsdp1, WithoutALateFreeThereIsARace) {
  Trace result = sharded(layer_trace(layers(4, 4096)), ",ranks=4,limit_all_gathers=0");
  ASSERT_EQ(races(result), std::vector<std::string>{});
  for (Op& op : result.ops)
    if (op.kind == OpKind::free) op.wait_for = WaitFor::nothing;
  EXPECT_NE(races(result), std::vector<std::string>{});
}

TEST(Fsdp1, AccumulationWithoutSynchronization) {
  LayerShape shape;
  shape.passes = 3;
  const Trace trace = layer_trace(shape);
  const std::string free = ",ranks=4,limit_all_gathers=0,accumulation=no_sync";
  EXPECT_EQ(program(sharded(trace, free)),
            "G768 G1536 G3072 G3072 G1536 G768 G768 G1536 G3072 G3072 G1536 G768 G768 G1536 G3072 G3072 G1536 S3072 "
            "G768 S1536 S768 ");
  // Parameters stay whole over the passes, as PyTorch's notes on no_sync() say.
  EXPECT_EQ(program(sharded(trace, free + ",strategy=grad_op")), "G768 G1536 G3072 S3072 S1536 S768 ");
}

// A re-run of two units comes behind the gather of both, where backward has asked for the second ahead; else it gathers
// that once more.
TEST(Fsdp1, ReRunsFindTheirParameters) {
  GptShape shape;
  shape.layers = 4;
  const Trace trace = gpt_step(shape);
  const auto gathers = [](const Trace& t) {
    return std::ranges::count_if(t.ops, [](const Op& op) { return op.collective == CollectiveKind::all_gather; });
  };
  struct Case {
    const char *checkpoint, *more;
    int extra;
  };
  for (const auto& [checkpoint, more, extra] :
       {Case{"checkpoint:mode=full", "", 0}, Case{"checkpoint:every=2", "", 0},
        Case{"checkpoint:every=2", ",backward_prefetch=none", 2},
        Case{"checkpoint:every=2", ",backward_prefetch=none,reduce_dtype=fp32", 2}}) {
    const Trace result = sharded(trace, std::string(",ranks=4") + more, checkpoint);
    EXPECT_EQ(gathers(result), gathers(sharded(trace, std::string(",ranks=4") + more)) + extra) << checkpoint << more;
    EXPECT_EQ(check(result), std::vector<std::string>{}) << checkpoint << more;
    EXPECT_EQ(races(result), std::vector<std::string>{}) << checkpoint << more;
    EXPECT_EQ(of(live_bytes(result).back(), StorageKind::communication_buffer), 0) << checkpoint << more;
  }
}

TEST(Fsdp1, RefusesWhatItDoesNotHave) {
  const Trace trace = layer_trace({});
  expect_refusal(trace, ",ranks=4,strategy=no_shard", "--policy ddp");
  expect_refusal(trace, ",ranks=4,strategy=hybrid", "expected hybrid or hybrid_grad_op with replicas");
  expect_refusal(trace, ",ranks=4,replicate=2,strategy=full", "expected hybrid");
  expect_refusal(trace, ",ranks=4,reshard_after_forward=0", "is no setting of version 1");
  Trace mixed = trace;
  for (Op& op : mixed.ops)
    if (op.module != 0) op.module = mixed.strings.intern("network");
  for (Storage& s : mixed.storages)
    if (s.kind == StorageKind::parameter && s.bytes == 1024) s.shape = mixed.shapes.intern({256});
  expect_refusal(mixed, ",ranks=4", "flattens tensors of one type only");
  // Its words are the output layer's weight, too, whose gradient the root makes.
  const std::string tied = std::string(MEMWALL_SOURCE) + "/traces/samples/captures/variants/checkpointed.mwc.gz";
  expect_refusal(modelled_on(read_mwc(tied).trace, load_machine("h100-sxm-80gb")), ",ranks=2,units=words",
                 "made outside of the backward of its unit");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
