// Is what is wrong with an axis told with its name, before a point is run, and nothing else refused?
#include "study/sweep/axis_check.h"

#include <gtest/gtest.h>

#include "sim/error.h"
#include "tests/support/gpt_trace.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class AxisCheck : public testing::Test {
 protected:
  AxisCheck() {
    Trace trace = gpt_step({});
    trace.machine = "a100-sxm-80gb";
    study_.add_step("gpt", std::move(trace));
  }

  // The sentence by which the axes are refused; "" where they are not.
  std::string refusal(const std::vector<std::string>& texts) {
    std::vector<Axis> axes;
    for (const std::string& text : texts) axes.push_back(parse_axis(text));
    AxisTargets targets;
    for (const Axis& axis : axes) targets.push_back(axis_target(axis.name, base_, axes));
    try {
      require_separate(axes, targets, base_);
      require_values(study_, axes, targets, base_, points_of({.axes = axes}));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }

  Study study_;
  Scenario base_{.step = {"gpt"}, .machine = "a100-sxm-80gb"};
};

TEST_F(AxisCheck, TwoAxesOfOneNumberAreRefused) {
  EXPECT_EQ(refusal({"pcie=gen3|gen4", "link.pcie_h2d.bandwidth=1GB/s|2GB/s"}),
            "Axes pcie and link.pcie_h2d.bandwidth set the same number; leave one out.");
  EXPECT_EQ(refusal({"link.pcie_d2h.bandwidth=1GB/s|2GB/s", "link.pcie_h2d.bandwidth=1GB/s|2GB/s"}), "");
  EXPECT_EQ(refusal({"pcie=gen3|gen4", "gpu.hbm.bandwidth=1TB/s|2TB/s"}), "");
  EXPECT_EQ(refusal({"scale.kernels=1|2", "scale.host=1|2"}), "");
}

TEST_F(AxisCheck, AnAxisOfWhatTheBaseSaysIsRefused) {
  base_.settings = {"link.pcie_h2d.bandwidth=3GB/s"};
  EXPECT_EQ(refusal({"pcie=gen3|gen4"}),
            "Axis pcie replaces what --set link.pcie_h2d.bandwidth=3GB/s says; leave one out.");
  EXPECT_NE(refusal({"machine=h100-sxm-80gb|t4"}), "");
  base_.machine.clear();
  EXPECT_EQ(refusal({"machine=h100-sxm-80gb|a100-sxm-80gb"}), "");
  base_.policies = {"checkpoint:mode=full"};
  EXPECT_NE(refusal({"checkpoint.mode=full|sqrt"}).find("checkpoint.mode"), std::string::npos);
}

TEST_F(AxisCheck, AValueThatNothingTakesIsRefusedWithItsAxis) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"gpu.hbm.bandwidth=1TB/s|2TB"}, "Axis gpu.hbm.bandwidth, value 2TB: "},
      {{"gpu.hbm.bandwith=1TB/s|2TB/s"}, "Axis gpu.hbm.bandwith, value 1TB/s: "},
      {{"budget=8GiB|8parsec"}, "Axis budget, value 8parsec: "},
      {{"policy=none|chekpoint"}, "Axis policy, value chekpoint: "},
      {{"policy=zero:ranks=8", "zero.stage=1|9"}, "Axis zero.stage, value 9: "},
      {{"repeat=1|0"}, "Axis repeat, value 0: "},
      {{"allocator=pytorch|jemalloc"}, "Axis allocator, value jemalloc: "}};
  for (const auto& [axes, begin] : cases) EXPECT_EQ(refusal(axes).substr(0, begin.size()), begin) << refusal(axes);
}

// What is wrong only beside another value is those points' failure.
TEST_F(AxisCheck, AValueThatIsRightByItselfIsNot) {
  EXPECT_EQ(refusal({"policy=none|zero:ranks=8", "zero.stage=1|2"}), "");
  base_.machine.clear();
  EXPECT_EQ(refusal({"machine=a100-sxm-80gb|g10-a100-40gb", "link.nvlink_out.bandwidth=1GB/s|2GB/s"}), "")
      << "one of the machines has no such link";
}

TEST_F(AxisCheck, WithoutAMachineNumbersAreThoseOfTheStepsOwn) {
  base_.machine.clear();
  EXPECT_EQ(refusal({"gpu.hbm.bandwidth=1TB/s|2TB"}).substr(0, 35), "Axis gpu.hbm.bandwidth, value 2TB: ")
      << refusal({"gpu.hbm.bandwidth=1TB/s|2TB"});
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
