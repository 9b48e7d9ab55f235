// Linear layers as grids of tiles (TiledLinear): which operators run, against what PyTorch runs; what a tile takes
// under stage 3 of ZeRO, against the closed form of ZeRO-Infinity's paper.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/generate.h"
#include "sim/error.h"
#include "tests/support/deepspeed_checks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using namespace deepspeed_checks;

constexpr std::int64_t kWidth = 4096;

Trace gpt(const std::vector<std::string>& settings = {}) {
  TrainingJob job = load_training_job("gpt3-175b");
  set_all(job, {"layers=2", "width=" + std::to_string(kWidth), "heads=32", "vocabulary=64", "longest=16", "sequence=16",
                "batch=1", "precision=fp16", "attention=plain", "optimizer=adam", "tied_embedding=false"});
  set_all(job, settings);
  return generate_step(job.model, job.recipe);
}

// With a time for each kernel, which policies ask for.
Trace timed(Trace t) {
  t.knowledge.timing = true;
  for (Op& op : t.ops)
    if (op.kind == OpKind::kernel) op.duration = microseconds(1);
  return t;
}

std::string tile_factor(std::int64_t factor) { return "tile_factor=" + std::to_string(factor); }

double flops_of_products(const Trace& t) {
  double flops = 0;
  for (const Op& op : t.ops)
    if (op.operator_class == OperatorClass::gemm) flops += op.flops;
  return flops;
}

std::vector<std::string> kernels_within(const Trace& t, const std::string& module, Phase phase) {
  std::vector<std::string> names;
  for (const Op& op : t.ops)
    if (op.kind == OpKind::kernel && op.phase == phase && t.strings[op.module].starts_with(module))
      names.push_back(t.strings[op.name].substr(6));
  return names;
}

Bytes parameter_bytes(const Trace& t) {
  Bytes bytes = 0;
  for (const Storage& s : t.storages)
    if (s.kind == StorageKind::parameter && s.preexisting) bytes += s.bytes;
  return bytes;
}

// The operators of torch.profiler for TiledLinear(8, 12, in_splits=2, out_splits=3, bias=True) in PyTorch 2.15 and
// DeepSpeed 0.19.6: each product is an mm of a slice, whose bias is added by an operator of its own; the first tile of
// an output is cloned, the next added.
TEST(TiledLinear, RunsTheOperatorsThatPyTorchRuns) {
  const Trace t = gpt({tile_factor(2)});
  std::vector<std::string> expected;
  for (int out = 0; out < 2; ++out)
    for (const char* name : {"mm", "clone", "mm", "add", "add"}) expected.emplace_back(name);
  expected.emplace_back("cat");
  EXPECT_EQ(kernels_within(t, "layers.0.attention.out", Phase::forward), expected);
  // Per tile the gradients of weight and input, which are summed over outputs as they come; last, those of the slices
  // are put together.
  std::vector<std::string> backward = kernels_within(t, "layers.0.attention.out", Phase::backward);
  std::map<std::string, int> counted;
  for (const std::string& name : backward) ++counted[name];
  EXPECT_EQ(counted["mm"], 8);
  EXPECT_EQ(counted["sum"], 2);
  EXPECT_EQ(counted["add"] + counted["add_"], 2);
  EXPECT_EQ(counted["cat"], 1);
  EXPECT_EQ(counted["clone"], 0);
}

TEST(TiledLinear, OfOneInputAddsTheBiasInTheProduct) {
  const std::vector<std::string> expected{"addmm", "clone", "addmm", "clone", "addmm", "clone", "cat"};
  EXPECT_EQ(kernels_within(gpt({tile_factor(1)}), "layers.0.attention.qkv", Phase::forward), expected);
}

TEST(TiledLinear, KeepsParametersAndProducts) {
  const Trace whole = gpt();
  for (const std::int64_t factor : {1, 2, 8}) {
    const Trace tiled = gpt({tile_factor(factor)});
    EXPECT_EQ(parameter_bytes(tiled), parameter_bytes(whole)) << factor;
    EXPECT_EQ(flops_of_products(tiled), flops_of_products(whole)) << factor;
  }
}

TEST(TiledLinear, WhatDoesNotDivideIsRefused) {
  EXPECT_THROW(gpt({tile_factor(3)}), UsageError);
  EXPECT_THROW(gpt({tile_factor(2), "execution=compiled", "attention=flash"}), UsageError);
  EXPECT_THROW(gpt({tile_factor(2), "inner=6000"}), UsageError);
}

// ---- under stage 3 ----

// Nothing stays gathered, nothing is kept, nothing is fetched ahead, and buckets are no larger than they have to be.
constexpr const char* kBare =
    ",param_persistence_threshold=20000,max_reuse_distance=0,prefetch_bucket_size=0,reduce_bucket_size=1";

struct WorkingMemory {
  Bytes parameter = 0, gradient = 0;  // of the operator that takes most: gathered, and made
};

// Of what is made within the step; flat gradients of a sub-group, in 16 bit and in fp32, are the optimizer's.
WorkingMemory working_memory(const Trace& t) {
  WorkingMemory most;
  for (const Storage& s : t.storages) {
    const std::string& label = t.strings[s.label];
    if (s.preexisting || label == "deepspeed.fp32_sub_group_gradients" || label == "deepspeed.flat_gradients") continue;
    if (s.kind == StorageKind::parameter) most.parameter = std::max(most.parameter, s.bytes);
    if (s.kind == StorageKind::gradient) most.gradient = std::max(most.gradient, s.bytes);
  }
  return most;
}

// Model-state working memory: 4 hd 4hd bytes of the operator from hd to 4 hd, parameters and gradients in 16 bit
// (Rajbhandari et al. 2021, equation 4). Of f x 4f tiles each takes a 4 f^2-th of it.
TEST(MemoryCentricTiling, DividesTheWorkingMemoryOfTheLargestOperatorByItsTiles) {
  constexpr Bytes kWhole = 4 * kWidth * 4 * kWidth;
  const WorkingMemory whole = working_memory(rewritten(timed(gpt()), deepspeed(3, 8, kBare)));
  EXPECT_EQ(whole.parameter + whole.gradient, kWhole);
  for (const std::int64_t factor : {1, 2, 4}) {
    const WorkingMemory tiled = working_memory(rewritten(timed(gpt({tile_factor(factor)})), deepspeed(3, 8, kBare)));
    EXPECT_EQ(tiled.parameter + tiled.gradient, kWhole / (4 * factor * factor)) << factor;
  }
}

TEST(MemoryCentricTiling, LowersThePeakOfGatheredParameters) {
  const auto peak = [](const Trace& trace) {
    const Trace t = rewritten(timed(trace), deepspeed(3, 8, kBare));
    expect_sound(t);
    const std::vector<Bytes> live = live_bytes(t, StorageKind::parameter);
    return *std::max_element(live.begin(), live.end()) - at_rest(t, StorageKind::parameter);
  };
  EXPECT_EQ(peak(gpt()), 2 * kWidth * 4 * kWidth);
  EXPECT_EQ(peak(gpt({tile_factor(2)})), 2 * kWidth * kWidth / 4);
}

TEST(MemoryCentricTiling, LeavesVolumesAsTheyWere) {
  const Trace whole = rewritten(timed(gpt()), deepspeed(3, 8, kBare));
  const Trace tiled = rewritten(timed(gpt({tile_factor(2)})), deepspeed(3, 8, kBare));
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter})
    EXPECT_EQ(sent(tiled, kind), sent(whole, kind)) << to_string(kind);
  EXPECT_GT(count_named(tiled, "all_gather"), 3 * count_named(whole, "all_gather"));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
