#include "policies/trace/module_blocks.h"

#include <gtest/gtest.h>

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(ModuleBlocks, ABlockIsTheOutermostRepeatedModule) {
  for (const BlockRule rule : {BlockRule::numbered, BlockRule::alike}) {
    const ModuleBlocks blocks({"embedding", "model.layers.0.attention.norm_1", "model.layers.0.mlp",
                               "model.layers.1.attention", "model.layers.1.mlp", "head", "version2"},
                              rule);
    EXPECT_EQ(blocks.of("model.layers.1.mlp"), "model.layers.1");
    EXPECT_EQ(blocks.of("model.layers.0.attention.norm_1"), "model.layers.0");
    EXPECT_EQ(blocks.of("head"), "");
    EXPECT_EQ(blocks.of("version2"), "");
  }
}

TEST(ModuleBlocks, ContainersOfDifferentThingsAreNoBlocks) {
  for (const BlockRule rule : {BlockRule::numbered, BlockRule::alike}) {
    const ModuleBlocks blocks(
        {"VGG_0.Sequential_0.Conv2d_0", "VGG_0.Sequential_0.Conv2d_1", "VGG_0.Sequential_1.Linear_0",
         "VGG_0.Sequential_1.Linear_1", "Net_0.Block_0.Linear_0", "Net_0.Block_1.Linear_2"},
        rule);
    EXPECT_EQ(blocks.of("VGG_0.Sequential_0.Conv2d_1"), "VGG_0.Sequential_0.Conv2d_1");
    EXPECT_EQ(blocks.of("VGG_0.Sequential_1.Linear_0"), "VGG_0.Sequential_1.Linear_0");
    EXPECT_EQ(blocks.of("Net_0.Block_1.Linear_2"), "Net_0.Block_1");
  }
}

TEST(ModuleBlocks, TheRulesDifferWhereStagesAreNumberedToo) {
  const std::set<std::string> paths = {"layer1.0.conv1", "layer1.1.conv1", "layer2.0.conv1", "layer2.1.conv1"};
  EXPECT_EQ(ModuleBlocks(paths, BlockRule::numbered).of("layer1.0.conv1"), "layer1");
  EXPECT_EQ(ModuleBlocks(paths, BlockRule::alike).of("layer1.0.conv1"), "layer1.0");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
