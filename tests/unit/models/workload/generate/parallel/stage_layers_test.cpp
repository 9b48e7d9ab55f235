// Which layers each stage holds: the divisions of ../shared/spec/parallelism.md, 3.1 and G16, and what each framework
// refuses.
#include "models/workload/generate/parallel/stage_layers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "sim/error.h"
#include "tests/support/parallel_ranks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Counts = std::vector<std::int64_t>;

ModelParallel parallel(std::int64_t pipeline, std::int64_t interleave = 1) {
  ModelParallel p;
  p.pipeline = pipeline, p.interleave = interleave;
  return p;
}

Counts counts(const ModelParallel& p, std::int64_t layers) {
  Counts all;
  for (const StageLayers& stage : stage_layers(p, layers)) all.push_back(stage.count);
  return all;
}

std::string refusal(const ModelParallel& p, std::int64_t layers) {
  try {
    stage_layers(p, layers);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& sentence, const char* part) { return sentence.find(part) != std::string::npos; }

TEST(StageLayers, EvenAndInTheOrderOfStages) {
  const std::vector<StageLayers> stages = stage_layers(parallel(2, 2), 8);
  EXPECT_EQ(stages, (std::vector<StageLayers>{{0, 2, true, false}, {2, 2}, {4, 2}, {6, 2, false, true}}));
  EXPECT_TRUE(says(refusal(parallel(3), 8), "8 layers cannot be divided over 3 GPUs"));
  EXPECT_TRUE(says(refusal(parallel(2, 3), 8), "4 layers of a GPU cannot be divided into 3 chunks"));
}

TEST(StageLayers, TheRefusalSaysWhichEndsDivide) {
  EXPECT_TRUE(says(refusal(parallel(16), 126), "(with 7 and 7 each other GPU has 8)"));  // Llama 3 405B's own
  EXPECT_FALSE(says(refusal(parallel(2), 7), "(with"));                                  // no other GPU would be left
  std::size_t offered = 0;
  for (std::int64_t ranks = 3; ranks <= 20; ++ranks)
    for (std::int64_t chunks = 1; chunks <= 3; ++chunks)
      for (std::int64_t layers = ranks * chunks; layers <= 130; ++layers) {
        ModelParallel p = parallel(ranks, chunks);
        const std::string text = refusal(p, layers);
        const std::size_t at = text.find("(with ");
        if (text.find("cannot be divided over") == std::string::npos || layers % chunks != 0) continue;
        ASSERT_NE(at, std::string::npos) << text;
        int first = 0, last = 0, each = 0;
        ASSERT_EQ(std::sscanf(text.c_str() + at, "(with %d and %d each other GPU has %d", &first, &last, &each), 3);
        p.first_stage_layers = first, p.last_stage_layers = last;
        const Counts found = counts(p, layers);
        EXPECT_EQ(std::accumulate(found.begin(), found.end(), std::int64_t{0}), layers);
        EXPECT_EQ(found[1] * chunks, each);
        ++offered;
      }
  EXPECT_GT(offered, 1000U);
}

TEST(StageLayers, FirstAndLastOfTheirOwn) {
  ModelParallel p = parallel(8);
  p.first_stage_layers = 10, p.last_stage_layers = 14;
  EXPECT_EQ(counts(p, 96), (Counts{10, 12, 12, 12, 12, 12, 12, 14}));
  p.first_stage_layers = 11, p.last_stage_layers = 10;
  EXPECT_TRUE(says(refusal(p, 96), "75 are left for 6"));
  EXPECT_TRUE(
      says(refusal(p, 20), "first_stage_layers 11 and last_stage_layers 10 are more than 20 layers over 8 GPUs"));
  EXPECT_TRUE(says(refusal(parallel(8), 5), "5 layers are too few for 8 GPUs in a pipeline"));
  p.first_stage_layers = 5, p.last_stage_layers = 0;
  EXPECT_EQ(counts(p, 96), (Counts{5, 13, 13, 13, 13, 13, 13, 13}));
}

TEST(StageLayers, EmbeddingAndLossCountAsLayers) {
  ModelParallel p = parallel(4);
  p.embedding_in_split = p.loss_in_split = true;
  EXPECT_EQ(counts(p, 30), (Counts{7, 8, 8, 7}));
  p.loss_in_split = false;
  EXPECT_EQ(counts(p, 31), (Counts{7, 8, 8, 8}));
  p = parallel(2, 2);
  p.embedding_in_split = p.loss_in_split = true;
  EXPECT_EQ(counts(p, 6), (Counts{1, 2, 2, 1}));
}

TEST(StageLayers, LayoutsWrittenOut) {
  ModelParallel p = parallel(8, 4);
  p.stage_layout = "Et*3|(tt|)*29,t|L";
  const std::vector<StageLayers> stages = stage_layers(p, 62);
  ASSERT_EQ(stages.size(), 32u);
  EXPECT_EQ(stages.front(), (StageLayers{0, 3, true, false}));
  EXPECT_EQ(stages[1], (StageLayers{3, 2}));
  EXPECT_EQ(stages[29], (StageLayers{59, 2}));
  EXPECT_EQ(stages[30], (StageLayers{61, 1}));
  EXPECT_EQ(stages.back(), (StageLayers{62, 0, false, true}));
  p = parallel(2);
  p.stage_layout = "Et|(t|t)L";
  EXPECT_TRUE(says(refusal(p, 3), "3 stages; expected 2"));
  p.stage_layout = "Ett|tL";
  EXPECT_EQ(counts(p, 3), (Counts{2, 1}));
  EXPECT_TRUE(says(refusal(p, 4), "has 3 layers; expected the model's 4"));
  p.stage_layout = "tt|tEL";
  EXPECT_TRUE(says(refusal(p, 3), "expected E in the first stage and L in the last"));
  p.stage_layout = "Ett|tm|L";
  EXPECT_TRUE(says(refusal(p, 3), "multi-token prediction"));
  p.stage_layout = "Ett|tx";
  EXPECT_TRUE(says(refusal(p, 3), "an unknown letter stands at character 6"));
  p.stage_layout = "E(tt|tL";
  EXPECT_TRUE(says(refusal(p, 3), "a bracket stays open"));
  p.stage_layout = "Ett)|tL";
  EXPECT_TRUE(says(refusal(p, 3), "a bracket closes that was not opened"));
  p.stage_layout = "Et*|tL";
  EXPECT_TRUE(says(refusal(p, 3), "no number follows *"));
  p.stage_layout = "E((((t*999999)*999999)*999999)*999999)|L";
  EXPECT_TRUE(says(refusal(p, 3), "grows too long"));
  p.stage_layout = "Ett|tL";
  p.first_stage_layers = 2;
  EXPECT_TRUE(says(refusal(p, 3), "refuses both"));
}

TEST(StageLayers, Torchtitan) {
  ModelParallel p = parallel(4, 2);
  p.framework = ParallelFramework::torchtitan;
  EXPECT_EQ(counts(p, 32), (Counts{4, 5, 4, 4, 4, 4, 4, 3}));
}

TEST(StageLayers, EachLayerOnce) {
  std::mt19937 random(16);
  for (int i = 0; i < 300; ++i) {
    ModelParallel p = parallel(1 + random() % 8, 1 + random() % 3);
    p.framework = static_cast<ParallelFramework>(random() % 3);
    if (p.framework == ParallelFramework::deepspeed) p.interleave = 1;
    const std::int64_t layers = p.pipeline * p.interleave * (1 + random() % 4);
    std::int64_t next = 0;
    const std::vector<StageLayers> stages = stage_layers(p, layers);
    for (const StageLayers& stage : stages) {
      EXPECT_EQ(stage.first, next);
      EXPECT_GE(stage.count, 0);
      EXPECT_EQ(stage.embedding, &stage == &stages.front());
      EXPECT_EQ(stage.loss, &stage == &stages.back());
      next += stage.count;
    }
    EXPECT_EQ(next, layers);
  }
}

// The layers that a rank's program runs are those of its stages.
TEST(StageLayers, AreThoseOfPrograms) {
  Recipe recipe = parallel_recipe(1, 2, 2, 2);
  recipe.parallel.stage_layout = "Et|ttt|tt|L";
  const std::vector<Trace> ranks = generated_ranks(small_gpt(6), recipe);
  const std::vector<std::set<std::string>> expected{{"0", "4", "5"}, {"1", "2", "3"}};
  for (std::size_t i = 0; i < 2; ++i) {
    std::set<std::string> layers;
    for (const Op& op : ranks[i].ops) {
      const std::string& module = ranks[i].strings[op.module];
      if (starts_with(module, "layers.")) layers.insert(module.substr(7, module.find('.', 7) - 7));
    }
    EXPECT_EQ(layers, expected[i]) << i;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
