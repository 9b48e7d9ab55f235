// Does a step from a model's configuration say what of it nobody chose, and what it does not follow?
#include "study/generated_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/support/scratch_folder.h"
#include "traces/run/analysis/longest_sequence.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class GeneratedStepTest : public testing::Test {
 protected:
  GeneratedStepTest() {
    std::ofstream(file_) << R"({"model_type": "mistral", "hidden_size": 64, "intermediate_size": 128,
      "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 256,
      "max_position_embeddings": 512, "sliding_window": 128})";
  }
  Trace step(const std::string& settings) const { return generated_step(file_.string() + settings, {}).trace; }

  ScratchFolder folder_;
  const std::filesystem::path file_ = folder_ / "config.json";
};

bool says(const Trace& t, const std::string& part) {
  return std::ranges::any_of(t.notes, [&](const std::string& note) { return note.find(part) != note.npos; });
}

std::string batch_of(const Trace& t) {
  const auto item = std::ranges::find(t.recipe, "batch", &RecipeItem::what);
  return item == t.recipe.end() ? "" : item->value;
}

TEST_F(GeneratedStepTest, SaysThatItsSequenceIsTheLongestWhereNoneIsGiven) {
  EXPECT_EQ(batch_of(step("")), "1 x 512 tokens, the longest that the model takes");
  EXPECT_TRUE(batch_of(step("")).ends_with(kLongestSequence));
  EXPECT_EQ(batch_of(step(":sequence=512")), "1 x 512 tokens");
  EXPECT_EQ(batch_of(generated_step(file_.string(), {"sequence=64"}).trace), "1 x 64 tokens");
  EXPECT_EQ(batch_of(generated_step("gpt2-124m:layers=1", {}).trace).find("longest"), std::string::npos)
      << "the length that it is taken to train at";
}

TEST_F(GeneratedStepTest, ASlidingWindowIsNotedWhereTheSequenceIsLonger) {
  const std::string note = "Attention slides over 128 tokens";
  EXPECT_TRUE(says(step(""), note));
  EXPECT_TRUE(says(step(":sequence=129"), note));
  EXPECT_FALSE(says(step(":sequence=128"), note));
  EXPECT_FALSE(says(generated_step(file_.string(), {"sequence=64"}).trace, note));
}

TEST_F(GeneratedStepTest, OfFamiliesSaysWhatItsKernelOfAttentionIsTakenToDo) {
  const auto gemma = [](const char* settings) {
    return generated_step(std::string("gemma2-2b:layers=2,width=256,vocabulary=512,") + settings, {}).trace;
  };
  EXPECT_TRUE(says(gemma("sequence=8192,batch=1"), "Attention slides over 4096 tokens in 1 of 2 layers"));
  EXPECT_FALSE(says(gemma("sequence=4096"), "slides"));
  EXPECT_TRUE(says(gemma("sequence=128"), "Scores are capped inside the kernel"));
  EXPECT_FALSE(says(gemma("sequence=128,attention=plain"), "Scores are capped"));
  EXPECT_FALSE(says(gemma("sequence=128,attention=plain,sliding_window=16"), "slides")) << "its mask has the window";
}

TEST_F(GeneratedStepTest, CountsTheParametersThatATokenMeets) {
  const GeneratedFigures dense = generated_step(file_.string(), {"sequence=64"}).figures;
  EXPECT_EQ(dense.active_parameters, dense.parameters);
  const GeneratedFigures experts =
      generated_step(file_.string(), {"sequence=64", "experts=4", "experts_per_token=1"}).figures;
  EXPECT_EQ(experts.parameters - experts.active_parameters, 3 * 3 * 64 * 128) << "three experts of three matrices";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
