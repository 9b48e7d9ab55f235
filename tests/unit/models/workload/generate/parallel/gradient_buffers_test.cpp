// Megatron-LM's gradient buffers: where parameters lie in them, and when they are reduced (../shared/spec/
// parallelism.md, 4.1, 4.2, 3.8 and G9).
#include "models/workload/generate/parallel/gradient_buffers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/parallel_ranks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Ends = std::vector<std::pair<std::int64_t, std::int64_t>>;

Ends ends(const BufferLayout& layout) {
  Ends all;
  for (const BufferLayout::Bucket& bucket : layout.buckets) all.push_back({bucket.first, bucket.end});
  return all;
}

TEST(GradientBuffers, LastParametersComeFirst) {
  const BufferLayout one = buffer_layout({100, 70, 200}, {}, 4, 0);
  EXPECT_EQ(ends(one), (Ends{{0, 512}}));
  EXPECT_EQ(one.elements() / 4, 128);
  EXPECT_EQ(one.buckets[0].parameters, (std::vector<std::size_t>{2, 1, 0}));
  EXPECT_EQ(one.buckets[0].begins, (std::vector<std::int64_t>{0, 256, 384}));
  const BufferLayout two = buffer_layout({100, 70, 200}, {}, 4, 300);
  EXPECT_EQ(ends(two), (Ends{{0, 384}, {384, 512}}));
  EXPECT_EQ(two.buckets[0].parameters, (std::vector<std::size_t>{2, 1}));
  EXPECT_EQ(two.buckets[1].begins, (std::vector<std::int64_t>{384}));
}

TEST(GradientBuffers, TiedEmbeddingsAreAlone) {
  const BufferLayout layout = buffer_layout({640, 64, 64, 640}, {true, false, false, true}, 2, 0);
  EXPECT_EQ(ends(layout), (Ends{{0, 640}, {640, 768}, {768, 1408}}));
}

// Whatever the sizes: parameters in reverse, from multiples of 64 on, none over another, buckets of whole shards.
TEST(GradientBuffers, OfRandomSizes) {
  std::mt19937 random(9);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::int64_t> sizes(1 + random() % 12);
    for (std::int64_t& size : sizes) size = 1 + static_cast<std::int64_t>(random() % 700);
    const std::int64_t ranks = 1 + static_cast<std::int64_t>(random() % 6), bucket_size = random() % 3 * 400;
    const BufferLayout layout = buffer_layout(sizes, {}, ranks, bucket_size);
    std::int64_t at = 0;
    std::size_t next = sizes.size();
    for (const BufferLayout::Bucket& bucket : layout.buckets) {
      EXPECT_EQ(bucket.first, at);
      EXPECT_EQ(bucket.end % std::lcm<std::int64_t>(ranks, 128), 0);
      for (std::size_t k = 0; k < bucket.parameters.size(); ++k) {
        EXPECT_EQ(bucket.parameters[k], --next);
        EXPECT_EQ(bucket.sizes[k], sizes[next]);
        EXPECT_EQ(bucket.begins[k] % 64, 0);
        EXPECT_GE(bucket.begins[k], at);
        EXPECT_LT(bucket.begins[k] - at, 64);
        at = bucket.begins[k] + sizes[next];
      }
      EXPECT_LT(bucket.end - at, std::lcm<std::int64_t>(ranks, 128));
      at = bucket.end;
    }
    EXPECT_EQ(next, 0u);
    EXPECT_EQ(layout.elements(), at);
    if (bucket_size == 0) {
      EXPECT_EQ(layout.buckets.size(), 1u);
    }
  }
}

// --- in programs

struct Reduced {
  std::size_t before_last_backward = 0, all = 0;
};

// Reductions that begin before the last pass of the rank has ended, and all.
Reduced reductions(const Trace& rank) {
  Reduced found;
  std::size_t last_product = 0;
  for (std::size_t i = 0; i < rank.ops.size(); ++i)
    if (rank.ops[i].phase == Phase::backward && rank.ops[i].operator_class == OperatorClass::gemm) last_product = i;
  for (std::size_t i = 0; i < rank.ops.size(); ++i) {
    const Op& op = rank.ops[i];
    if (op.kind != OpKind::collective || rank.groups[op.group].name != "data parallel") continue;
    if (op.collective == CollectiveKind::all_gather) continue;
    ++found.all;
    found.before_last_backward += i < last_product;
  }
  return found;
}

// Plain 1F1B: from within the last backward pass on the first rank, whose buffer is cut, behind all passes elsewhere.
// Whether kernels add gradients to the buffer, or products do.
TEST(GradientBuffers, TheFirstRankReducesWithinBackward) {
  for (const MainGradients gradients : {MainGradients::fp32, MainGradients::fp32_fused, MainGradients::bf16_fused}) {
    Recipe recipe = parallel_recipe(1, 2, 1, 4);
    recipe.data_parallel = 2;
    recipe.parallel.main_gradients = gradients;
    recipe.parallel.overlap_grad_reduce = true;
    Model model = gpt3(4);  // 1.8e9 elements of a layer: buckets of 40e6 and more
    model.tied_embedding = false;
    const std::vector<Trace> ranks = generated_ranks(model, recipe);
    const Reduced first = reductions(ranks[0]), second = reductions(ranks[1]);
    EXPECT_GT(first.all, 8u);
    EXPECT_GT(first.before_last_backward, first.all / 2);
    EXPECT_EQ(second.all, 1u);
    EXPECT_EQ(second.before_last_backward, 0u);
    recipe.parallel.overlap_grad_reduce = false;
    for (const Trace& rank : generated_ranks(model, recipe)) {
      EXPECT_EQ(reductions(rank).all, 1u);
      EXPECT_EQ(reductions(rank).before_last_backward, 0u);
    }
  }
}

// Interleaved: rank i begins with a chunk i passes after the chunk's last one.
TEST(GradientBuffers, ChunksAreReducedInTheCoolDown) {
  Recipe recipe = parallel_recipe(1, 2, 2, 4);
  recipe.data_parallel = 2;
  recipe.parallel.main_gradients = MainGradients::fp32;
  recipe.parallel.overlap_grad_reduce = true;
  Model model = small_gpt(4);
  model.tied_embedding = false;
  const std::vector<Trace> ranks = generated_ranks(model, recipe);
  for (const Trace& rank : ranks) {
    EXPECT_EQ(reductions(rank).all, 2u) << "one buffer for each chunk";
    EXPECT_EQ(reductions(rank).before_last_backward, 1u) << "that of the last chunk, whose backward passes end first";
  }
}

// --- gathers of what the last step has updated (overlap_param_gather)

// "G" for a gather that starts and "P" for products of a pass, runs of which count once.
std::string gathers_and_passes(const Trace& rank) {
  std::string order;
  for (const Op& op : rank.ops) {
    const bool product = op.operator_class == OperatorClass::gemm && op.phase == Phase::forward;
    if (op.kind == OpKind::collective && op.collective == CollectiveKind::all_gather &&
        rank.groups[op.group].name == "data parallel")
      order += 'G';
    if (product && (order.empty() || order.back() != 'P')) order += 'P';
  }
  return order;
}

// A bucket while the one before it is used on the first rank, whose buffer is cut; all at once on others.
TEST(GradientBuffers, TheFirstRankGathersWithinForward) {
  Recipe recipe = parallel_recipe(1, 2, 1, 4);
  recipe.data_parallel = 2;
  recipe.parallel.main_gradients = MainGradients::fp32;
  recipe.parallel.distributed_optimizer = recipe.parallel.overlap_grad_reduce = true;
  recipe.parallel.overlap_param_gather = true;
  Model model = gpt3(4);
  model.tied_embedding = false;
  std::vector<Trace> ranks = generated_ranks(model, recipe);
  const std::string first = gathers_and_passes(ranks[0]);
  EXPECT_EQ(first.substr(0, 2), "GG") << "the first, and behind the wait for it the second";
  EXPECT_EQ(std::count(first.begin(), first.end(), 'P'), 2) << "of two layers, gathers between them: " << first;
  EXPECT_EQ(static_cast<std::size_t>(std::count(first.begin(), first.end(), 'G')), reductions(ranks[0]).all);
  EXPECT_EQ(gathers_and_passes(ranks[1]), "GP");
  recipe.parallel.overlap_param_gather = false;
  ranks = generated_ranks(model, recipe);
  EXPECT_EQ(gathers_and_passes(ranks[0]), "PG");
}

// Interleaved: two chunks at once, the third when the pass comes that is chunk 1's first on the first rank.
TEST(GradientBuffers, ChunksAreGatheredTogether) {
  Recipe recipe = parallel_recipe(1, 2, 3, 4);
  recipe.data_parallel = 2;
  recipe.parallel.main_gradients = MainGradients::fp32;
  recipe.parallel.distributed_optimizer = recipe.parallel.overlap_grad_reduce = true;
  recipe.parallel.overlap_param_gather = true;
  Model model = small_gpt(6);
  model.tied_embedding = false;
  for (const Trace& rank : generated_ranks(model, recipe)) EXPECT_EQ(gathers_and_passes(rank), "GGPGP");
}

// Each element of each gradient is added to the buffer once per micro-batch, and the buffer set to zero once.
TEST(GradientBuffers, EveryGradientIsAddedInEveryMicroBatch) {
  for (const MainGradients gradients : {MainGradients::fp32, MainGradients::fp32_fused}) {
    Recipe recipe = parallel_recipe(2, 2, 1, 3);
    recipe.parallel.main_gradients = gradients;
    Model model = small_gpt(4);
    for (const Trace& rank : generated_ranks(model, recipe)) {
      std::int64_t added = 0, parameters = 0, zeroed = 0;
      for (const Storage& s : rank.storages)
        if (s.kind == StorageKind::parameter && s.preexisting) parameters += s.bytes / 2;
      for (const Op& op : rank.ops) {
        const std::string& name = rank.strings[op.operator_name];
        const Shape& shape = rank.shapes[op.shape];
        const auto uses = rank.uses_of(op);
        const bool into_buffer = std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
          return use.access == Access::write && rank.storages[use.storage].kind == StorageKind::gradient;
        });
        if (!into_buffer || op.phase == Phase::optimizer) continue;
        if (name == "aten::add_") added += shape[0];
        if (name == "megatron::wgrad_gemm_accum_fp32") added += shape[1] * shape[2];
        if (name == "aten::zero_") zeroed += shape[0];
      }
      EXPECT_EQ(added, 3 * parameters);
      EXPECT_GE(zeroed, parameters);
      EXPECT_EQ(4 * zeroed, preexisting_bytes(rank, StorageKind::gradient));
    }
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
