// The products of tensor-parallel ranks: their shapes (../shared/spec/parallelism.md, 10.2 and G17), and that all ranks
// together compute what one GPU would.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/parallel_ranks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

bool is_product(const Op& op) { return op.kind == OpKind::kernel && op.operator_class == OperatorClass::gemm; }

// {m, n, k} of a module's products in a phase, in order.
std::vector<Shape> products_of(const Trace& rank, const std::string& module, Phase phase) {
  std::vector<Shape> found;
  for (const Op& op : rank.ops)
    if (is_product(op) && op.phase == phase && rank.strings[op.module] == module) {
      const Shape& shape = rank.shapes[op.shape];
      EXPECT_EQ(shape.front(), 1);
      found.push_back({shape.begin() + 1, shape.end()});
    }
  return found;
}

TEST(SplitProducts, ShapesOfALayer) {
  const Trace rank = generated_ranks(gpt3(2), parallel_recipe(8, 2)).front();
  using Shapes = std::vector<Shape>;
  const std::string at = "layers.0.";
  EXPECT_EQ(products_of(rank, at + "attention.qkv", Phase::forward), (Shapes{{2048, 4608, 12288}}));
  EXPECT_EQ(products_of(rank, at + "attention.qkv", Phase::backward),
            (Shapes{{2048, 12288, 4608}, {4608, 12288, 2048}}));
  EXPECT_EQ(products_of(rank, at + "attention.out", Phase::forward), (Shapes{{2048, 12288, 1536}}));
  EXPECT_EQ(products_of(rank, at + "attention.out", Phase::backward),
            (Shapes{{2048, 1536, 12288}, {12288, 1536, 2048}}));
  EXPECT_EQ(products_of(rank, at + "up", Phase::forward), (Shapes{{2048, 6144, 12288}}));
  EXPECT_EQ(products_of(rank, at + "up", Phase::backward), (Shapes{{2048, 12288, 6144}, {6144, 12288, 2048}}));
  EXPECT_EQ(products_of(rank, at + "down", Phase::forward), (Shapes{{2048, 12288, 6144}}));
  EXPECT_EQ(products_of(rank, at + "down", Phase::backward), (Shapes{{2048, 6144, 12288}, {12288, 6144, 2048}}));
  double forward = 0;
  for (const Op& op : rank.ops)
    if (is_product(op) && op.phase == Phase::forward) forward += op.flops;
  EXPECT_EQ(forward, 927'712'935'936.0);  // 24 s b h^2 / 8
}

// Attention has a share of the heads; what lies between rows and columns is whole, or split by tokens.
TEST(SplitProducts, ShapesOfTheRest) {
  for (const bool sequence_parallel : {false, true}) {
    Recipe recipe = parallel_recipe(8, 2);
    recipe.parallel.sequence_parallel = sequence_parallel;
    const Trace rank = generated_ranks(gpt3(2), recipe).front();
    const std::int64_t rows = sequence_parallel ? 256 : 2048;
    int attention = 0, norms = 0;
    for (const Op& op : rank.ops) {
      if (op.kind != OpKind::kernel || op.phase != Phase::forward) continue;
      const Shape& shape = rank.shapes[op.shape];
      if (op.operator_class == OperatorClass::attention) {
        EXPECT_EQ((Shape{shape.begin(), shape.begin() + 6}), (Shape{1, 12, 12, 2048, 2048, 128}));
        ++attention;
      }
      if (op.operator_class == OperatorClass::normalization) {
        EXPECT_EQ(shape, (Shape{rows, 12288}));
        ++norms;
      }
    }
    EXPECT_EQ(attention, 1);
    EXPECT_EQ(norms, 2);
  }
}

// Sum over all ranks of one phase's products.
std::map<Phase, double> flops_of(const std::vector<Trace>& ranks, std::int64_t tensor) {
  std::map<Phase, double> sums;
  for (const Trace& rank : ranks)
    for (const Op& op : rank.ops)
      if (is_product(op) || op.operator_class == OperatorClass::attention)
        sums[op.phase] += op.flops * static_cast<double>(tensor);
  return sums;
}

// Of the output layer's forward passes.
double of_head(const Model& model, double passes) {
  return passes * 2 * static_cast<double>(model.longest * model.width * model.vocabulary);
}

TEST(SplitProducts, RanksTogetherComputeTheUndividedStep) {
  Model llama = small_rotary_decoder();
  llama.layers = 8, llama.heads = 8, llama.key_value_heads = 8, llama.vocabulary = 1024;
  Model gpt = small_gpt(8);
  gpt.vocabulary = 1024;
  for (const Model& model : {gpt, llama})
    for (const ActivationCheckpoint checkpoint : {ActivationCheckpoint::none, ActivationCheckpoint::full}) {
      Recipe plain;
      plain.accumulation = 4;
      plain.checkpoint = checkpoint;
      std::map<Phase, double> whole = flops_of({generate_step(model, plain)}, 1);
      // PyTorch stops to recompute a layer before its last product, whose result nobody needs; Megatron-LM does not.
      if (checkpoint == ActivationCheckpoint::full) whole[Phase::recompute] = whole[Phase::forward] - of_head(model, 4);
      for (const std::int64_t tensor : {1, 2, 4, 8})
        for (const std::int64_t pipeline : {1, 2, 4})
          for (const std::int64_t interleave : {1, 2}) {
            if (pipeline == 1 && (interleave > 1 || tensor == 1)) continue;
            Recipe recipe = parallel_recipe(tensor, pipeline, interleave, 4);
            recipe.checkpoint = checkpoint;
            recipe.parallel.sequence_parallel = tensor == 4;
            recipe.parallel.main_gradients = tensor == 8 ? MainGradients::fp32_fused : MainGradients::none;
            EXPECT_EQ(flops_of(generated_ranks(model, recipe), tensor), whole)
                << fmt::format("t {} p {} v {} {}", tensor, pipeline, interleave, model.name);
          }
    }
}

// A planted fault: a stage that leaves a product out is found.
TEST(SplitProducts, AMissingProductIsFound) {
  Model gpt = small_gpt(4);
  gpt.vocabulary = 1024;
  Recipe plain;
  plain.accumulation = 2;
  std::vector<Trace> ranks = generated_ranks(gpt, parallel_recipe(2, 2, 1, 2));
  const std::map<Phase, double> whole = flops_of({generate_step(gpt, plain)}, 1);
  ASSERT_EQ(flops_of(ranks, 2), whole);
  std::find_if(ranks[1].ops.begin(), ranks[1].ops.end(), is_product)->flops = 0;
  EXPECT_NE(flops_of(ranks, 2), whole);
}

// Fewer heads of keys and values than ranks: each has one, so that products of K and V are repeated.
TEST(SplitProducts, HeadsOfKeysAndValuesAreRepeatedWhereRanksAreMore) {
  Model llama = small_rotary_decoder();  // two of them
  llama.heads = 8;
  for (const std::int64_t tensor : {2, 4, 8}) {
    const std::int64_t size = 64 / 8, rows = 32;
    Recipe recipe = parallel_recipe(tensor, 1);
    const Trace joint = generated_ranks(llama, recipe).front();
    EXPECT_EQ(products_of(joint, "layers.0.attention.qkv", Phase::forward),
              (std::vector<Shape>{{rows, 64 / tensor + 2 * size, 64}}));
    if (tensor > 2) continue;  // torchtitan repeats none
    recipe.parallel.framework = ParallelFramework::torchtitan;
    const Trace apart = generated_ranks(llama, recipe).front();
    EXPECT_EQ(products_of(apart, "layers.0.attention.q", Phase::forward),
              (std::vector<Shape>{{rows, 64 / tensor, 64}}));
    EXPECT_EQ(products_of(apart, "layers.0.attention.k", Phase::forward), (std::vector<Shape>{{rows, size, 64}}));
  }
}

// Where products of weights add up in fp32 themselves, they read and write the buffer, and nothing in 16 bits is made.
TEST(SplitProducts, FusedAccumulationMakesNoGradients) {
  for (const MainGradients gradients : {MainGradients::fp32, MainGradients::fp32_fused}) {
    const bool fused = gradients == MainGradients::fp32_fused;
    Recipe recipe = parallel_recipe(2, 2, 1, 3);
    recipe.parallel.main_gradients = gradients;
    std::size_t of_weights = 0;
    for (const Trace& rank : generated_ranks(small_gpt(2), recipe))
      for (const Op& op : rank.ops) {
        if (!is_product(op) || op.phase != Phase::backward || rank.shapes[op.shape][3] != 32) continue;
        ++of_weights;  // summed over 32 tokens
        EXPECT_EQ(rank.strings[op.operator_name], fused ? "megatron::wgrad_gemm_accum_fp32" : "aten::mm");
        std::size_t into_buffers = 0, writes = 0;
        for (const Use& use : rank.uses_of(op)) {
          if (use.access != Access::write) continue;
          ++writes;
          into_buffers += rank.storages[use.storage].kind == StorageKind::gradient;
        }
        EXPECT_EQ(writes, 1u);
        EXPECT_EQ(into_buffers, fused ? 1u : 0u);
      }
    EXPECT_EQ(of_weights, 3u * (4 + 4 + 1)) << "four linear layers each, one head, three micro-batches";
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
