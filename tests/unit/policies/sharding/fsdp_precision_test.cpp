// Does fsdp shard fp32, gather 16 bit and reduce in what it is told, whatever way the step itself mixes its types?
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "models/workload/generate/generate.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace_check.h"
#include "tests/support/live_bytes.h"
#include "tests/support/races.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Model small_gpt() {
  Model m;
  m.name = "small";
  m.layers = 3;
  m.width = 32;
  m.heads = 4;
  m.vocabulary = 48;
  m.longest = 32;
  return m;
}

Trace generated(Precision precision, bool master, int accumulation = 1) {
  Recipe recipe;
  recipe.precision = precision;
  recipe.master_parameters = master;
  recipe.accumulation = accumulation;
  recipe.batch = 2;
  recipe.sequence = 16;
  Trace trace = generate_step(small_gpt(), recipe);
  for (Op& op : trace.ops)
    if (runs_on_device(op.kind)) op.duration = microseconds(1);
  trace.knowledge.timing = true;
  return trace;
}

Trace sharded(const Trace& trace, const std::string& more) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  return apply_rewriters(trace, {parse_policy("fsdp:ranks=4,hook_us=0" + more)}, machine, *pricer);
}

Bytes sent(const Trace& trace, CollectiveKind kind) {
  Bytes bytes = 0;
  for (const Op& op : trace.ops)
    if (op.kind == OpKind::collective && op.collective == kind) bytes += op.bytes;
  return bytes;
}

std::size_t casts(const Trace& trace) {
  return static_cast<std::size_t>(std::ranges::count_if(trace.ops, [&](const Op& op) {
    return runs_on_device(op.kind) && trace.strings[op.operator_name].find("_to_copy") != std::string::npos;
  }));
}

void expect_sound(const Trace& trace) {
  EXPECT_EQ(check(trace), std::vector<std::string>{});
  EXPECT_EQ(races(trace), std::vector<std::string>{});
  EXPECT_EQ(of(live_bytes(trace).back(), StorageKind::communication_buffer), 0);
}

// At the optimizer's first op.
LiveBytes at_update(const Trace& trace) {
  std::size_t i = 0;
  while (!runs_on_device(trace.ops[i].kind) || trace.ops[i].phase != Phase::optimizer) ++i;
  return live_bytes(trace)[i];
}

// Three ways to write the same training: 16-bit parameters with fp32 copies in the optimizer, fp32 parameters under
// autocast, and, of the second, what FSDP does without a policy of its own. All shapes are multiples of 4.
TEST(FsdpPrecision, ShardsAreFp32AndGathersAre16Bit) {
  const Trace copies = sharded(generated(Precision::bf16, true), ",reduce_dtype=fp32");
  const Trace cast = sharded(generated(Precision::amp_bf16, false), ",param_dtype=bf16,reduce_dtype=fp32");
  const Trace wide = sharded(generated(Precision::amp_bf16, false), "");
  for (const Trace* trace : {&copies, &cast, &wide}) expect_sound(*trace);
  const Bytes gathered = sent(copies, CollectiveKind::all_gather),
              reduced = sent(copies, CollectiveKind::reduce_scatter);
  EXPECT_EQ(sent(cast, CollectiveKind::all_gather), gathered);
  EXPECT_EQ(sent(wide, CollectiveKind::all_gather), 2 * gathered);
  EXPECT_EQ(sent(cast, CollectiveKind::reduce_scatter), reduced);
  EXPECT_EQ(sent(wide, CollectiveKind::reduce_scatter), reduced);
  for (const Trace* trace : {&copies, &cast, &wide}) {
    const Bytes quarter = of(live_bytes(*trace).front(), StorageKind::parameter);
    EXPECT_EQ(of(live_bytes(*trace).front(), StorageKind::optimizer_state), 2 * quarter);
    EXPECT_EQ(of(at_update(*trace), StorageKind::gradient), quarter);
    EXPECT_EQ(quarter, of(live_bytes(copies).front(), StorageKind::parameter));
  }
}

TEST(FsdpPrecision, CastsOfParametersAndOfTheirGradientsGo) {
  const Trace before = generated(Precision::amp_bf16, false);
  const Trace wide = sharded(before, ""), cast = sharded(before, ",param_dtype=bf16");
  EXPECT_EQ(casts(wide), casts(before));
  // In forward four products per layer have a weight and a bias each, which backward casts back, and the output layer
  // has the words, whose gradient is cast before the embedding's is added. Casts of activations stay.
  EXPECT_EQ(casts(cast), casts(before) - (3 * 8 + 1) - 3 * 8);
  // FSDP reduces in the type of the parameters, unless it is told another; version 1 in that of gathered ones.
  const Bytes reduced = sent(wide, CollectiveKind::reduce_scatter);
  EXPECT_EQ(sent(cast, CollectiveKind::reduce_scatter), reduced);
  EXPECT_EQ(2 * sent(sharded(before, ",param_dtype=bf16,reduce_dtype=bf16"), CollectiveKind::reduce_scatter), reduced);
  const Trace flat = sharded(before, ",version=1"), flat_cast = sharded(before, ",version=1,param_dtype=bf16");
  EXPECT_EQ(2 * sent(flat_cast, CollectiveKind::reduce_scatter), sent(flat, CollectiveKind::reduce_scatter));
}

// The optimizer casts no gradient, and nobody copies the fp32 copies back.
TEST(FsdpPrecision, CopiesAreTheParameters) {
  const Trace before = generated(Precision::bf16, true), after = sharded(before, "");
  const auto named = [](const Trace& t, const char* name) {
    return std::ranges::count_if(t.ops, [&](const Op& op) {
      return op.phase == Phase::optimizer && t.strings[op.operator_name].find(name) != std::string::npos;
    });
  };
  EXPECT_GT(named(before, "_to_copy"), 0);
  EXPECT_EQ(named(after, "_to_copy"), 0);
  EXPECT_EQ(named(before, "_foreach_copy_"), 1);
  EXPECT_EQ(named(after, "_foreach_copy_"), 0);
  EXPECT_EQ(named(after, "_foreach_lerp_"), named(before, "_foreach_lerp_"));
}

// What a pass adds to reduced gradients it adds to shards: autograd's own additions go, and backward's gradients are
// reduced as they are.
TEST(FsdpPrecision, AccumulationAddsShards) {
  for (const bool master : {false, true}) {
    const Trace before = generated(master ? Precision::bf16 : Precision::amp_bf16, master, 3);
    const std::string types = master ? ",reduce_dtype=fp32" : ",param_dtype=bf16,reduce_dtype=fp32";
    const Trace once = sharded(generated(master ? Precision::bf16 : Precision::amp_bf16, master), types);
    const Trace each = sharded(before, types), last = sharded(before, types + ",accumulation=no_sync");
    expect_sound(each);
    expect_sound(last);
    EXPECT_EQ(sent(each, CollectiveKind::reduce_scatter), 3 * sent(once, CollectiveKind::reduce_scatter));
    EXPECT_EQ(sent(last, CollectiveKind::reduce_scatter), sent(once, CollectiveKind::reduce_scatter));
    EXPECT_EQ(of(at_update(each), StorageKind::gradient), of(at_update(once), StorageKind::gradient));
    EXPECT_EQ(of(at_update(last), StorageKind::gradient), of(at_update(once), StorageKind::gradient));
  }
}

TEST(FsdpPrecision, RefusesAnotherTypeThanTheStepComputesIn) {
  try {
    sharded(generated(Precision::fp32, false), ",param_dtype=bf16");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("no policy predicts another data type"), std::string::npos)
        << error.what();
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
