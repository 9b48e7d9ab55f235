// Does a generated step say what it assumes, and does each setting that it names bring the same step again?
#include "models/workload/generate/assumed_recipe.h"

#include <gtest/gtest.h>

#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/generate.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::vector<RecipeItem> recipe_of(const std::string& what) {
  const TrainingJob job = load_training_job(what);
  return assumed_recipe(job.model, job.recipe);
}

RecipeItem item_of(const std::string& what, const std::string& item) {
  for (const RecipeItem& found : recipe_of(what))
    if (found.what == item) return found;
  return {};
}

TEST(AssumedRecipe, SaysWhatLlamaAndGptAssumeDifferently) {
  EXPECT_EQ(item_of("llama3-8b", "precision"), (RecipeItem{"precision", "pure bf16", "precision=bf16"}));
  EXPECT_EQ(item_of("gpt2-124m", "precision"),
            (RecipeItem{"precision", "autocast to bf16, parameters fp32", "precision=amp_bf16"}));
  EXPECT_EQ(item_of("gpt2-124m:batch=8", "batch"), (RecipeItem{"batch", "8 x 1024 tokens", "batch=8,sequence=1024"}));
  EXPECT_EQ(item_of("gpt2-124m", "network"),
            (RecipeItem{"network", "12 layers of 768, 124.4 million parameters", "layers=12,width=768"}));
  EXPECT_EQ(item_of("mixtral-8x7b", "network").value,
            "32 layers of 4096, 46.70 billion parameters, of which a token meets 12.88 billion");
  EXPECT_EQ(item_of("resnet50", "network").value, "blocks 3 4 6 3, 25.56 million parameters");
  EXPECT_EQ(item_of("gpt-megatron", "kernels").value, "Megatron-LM's fused kernels");
  EXPECT_EQ(item_of("resnet50", "attention"), RecipeItem{}) << "it has none";
  EXPECT_EQ(item_of("resnet50", "batch").value, "1 image of 224 x 224");
}

// A setting that is printed can be given.
TEST(AssumedRecipe, NamesSettingsThatAreTaken) {
  for (const WorkloadSummary& workload : list_workloads()) {
    const TrainingJob job = load_training_job(workload.name);
    for (const RecipeItem& item : assumed_recipe(job.model, job.recipe)) {
      ASSERT_FALSE(item.setting.empty()) << item.what;
      TrainingJob given = load_training_job(workload.name + ":" + item.setting);
      const auto other = assumed_recipe(given.model, given.recipe);
      EXPECT_NE(std::find(other.begin(), other.end(), item), other.end()) << workload.name << ":" << item.setting;
    }
  }
}

TEST(AssumedRecipe, TravelsWithTheStep) {
  const TrainingJob job = load_training_job("gpt2-124m:layers=1");
  EXPECT_EQ(generate_step(job.model, job.recipe).recipe, assumed_recipe(job.model, job.recipe));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
