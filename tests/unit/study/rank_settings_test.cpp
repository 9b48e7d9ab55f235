// Numbers of one rank's GPU: which are understood, and what the others are told.
#include <gtest/gtest.h>

#include "sim/error.h"
#include "study/rank_settings.h"
#include "study/scale_text.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(RankSettings, AClockBecomesAScaleOfThatRank) {
  const Scenario scenario =
      with_rank_settings_as_scales({.settings = {"pcie=gen5", "rank[7].gpu.clock=0.8"}, .scale = {"host=2"}});
  EXPECT_EQ(scenario.settings, std::vector<std::string>{"pcie=gen5"});
  EXPECT_EQ(scenario.scale, (std::vector<std::string>{"host=2", "kernels=1.25,collectives=1,rank=7"}));
  const ScaleFactors factors = parse_scales(scenario.scale).back().factors;
  EXPECT_EQ(factors.kernels, 1.25);
  EXPECT_EQ(factors.rank, 7u);
}

TEST(RankSettings, RefusesWhatItDoesNotKnow) {
  for (const auto& [setting, sentence] :
       {std::pair{"rank[7].link.nvlink.bandwidth=1GB/s", "links of one rank alone are not implemented"},
        {"rank[7].gpu.hbm.bandwidth=1TB/s", "gpu.hbm.bandwidth of one rank is not implemented"},
        {"rank[x].gpu.clock=0.9", "it names no rank"},
        {"rank[7].gpu.clock", "it has no value"},
        {"rank[7].gpu.clock=0", "it has no factor above 0"}}) {
    try {
      with_rank_settings_as_scales({.settings = {setting}});
      ADD_FAILURE() << "taken: " << setting;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(sentence), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(with_rank_settings_as_scales({.settings = {"rank[7].gpu.clock=0.9", "rank[7].gpu.clock=0.8"}}),
               UsageError);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
