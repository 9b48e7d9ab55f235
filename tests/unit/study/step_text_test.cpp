// Are a step's settings found whatever group and folder stand before them, and left out one by one?
#include "study/step_text.h"

#include <gtest/gtest.h>

#include <array>

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Names = std::vector<std::string>;

TEST(StepText, NamesSettingsWithoutTheirGroups) {
  EXPECT_EQ(settings_said("gpt3-175b:tensor=8,model.layers=4"), (Names{"tensor", "layers"}));
  EXPECT_EQ(settings_said("a:b/net.textproto:batch=2"), Names{"batch"});
  for (const char* const none : {"gpt3-175b", "a:b/net.textproto"}) EXPECT_EQ(settings_said(none), Names{}) << none;
}

TEST(StepText, LeavesOutWhatIsNamed) {
  constexpr std::array<std::string_view, 2> kOfPasses = {"batch", "accumulation"};
  const auto others = [&](const char* step) { return without_settings(step, kOfPasses); };
  EXPECT_EQ(others("gpt2-124m:batch=8,layers=4"), "gpt2-124m:layers=4");
  EXPECT_EQ(others("gpt2-124m:layers=4,recipe.accumulation=2,width=8"), "gpt2-124m:layers=4,width=8");
  EXPECT_EQ(others("gpt2-124m:batch=8"), "gpt2-124m");
  EXPECT_EQ(others("a:b/net.textproto:batch=2,micro_batch=1"), "a:b/net.textproto:micro_batch=1");
  EXPECT_EQ(others("resnet50:blocks=3,4,6,3,batch=2"), "resnet50:blocks=3,4,6,3");
  EXPECT_EQ(others("gpt2-124m"), "gpt2-124m");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
