// Is every number of a scenario found, and is the scenario with another value of it the one that a person would type?
#include "study/explain/varied_number.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/hw/machine_file.h"
#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class VariedNumberTest : public testing::Test {
 protected:
  VariedNumber number(const Scenario& scenario, const std::string& name) {
    const VariedNumbers found = selected(varied_numbers(study_, scenario), {name});
    EXPECT_EQ(found.numbers.size(), 1u) << name;
    return found.numbers.empty() ? VariedNumber{} : found.numbers.front();
  }

  Study study_;
  Scenario scenario_{.step = {"gpt2-124m:layers=2,width=64,heads=2,sequence=64"}, .machine = "a100-sxm-40gb"};
};

TEST_F(VariedNumberTest, EveryNumberOfTheMachineFileIsVariedOrSaidNotToBe) {
  const VariedNumbers all = varied_numbers(study_, scenario_);
  std::size_t varied = 0;
  for (const MachineNumber& stated : machine_numbers("a100-sxm-40gb")) {
    const bool is_varied = std::ranges::find(all.numbers, stated.path, &VariedNumber::name) != all.numbers.end();
    const bool is_fixed = std::ranges::find(all.fixed, stated.path) != all.fixed.end();
    EXPECT_NE(is_varied, is_fixed) << stated.path;
    if (is_fixed) {
      const bool is_name = stated.path.starts_with("gpu.compute_m") || stated.path.starts_with("gpu.mig_profile.");
      EXPECT_TRUE(is_name || stated.value.find(':') != std::string::npos || stated.value.starts_with("0"))
          << stated.path;
    } else {
      EXPECT_FALSE(stated.path.starts_with("gpu.compute_m")) << "another GPU, not more or less of this one";
    }
    varied += is_varied ? 1 : 0;
  }
  EXPECT_GT(varied, 100u);
}

TEST_F(VariedNumberTest, WholeNumbersAreThoseThatTakeNoFractions) {
  for (const char* name : {"gpu.multiprocessors", "gpu_count", "host.cores", "link.nvme_read.sharers"})
    EXPECT_TRUE(number(scenario_, name).is_whole) << name;
  for (const char* name :
       {"gpu.hbm.bandwidth", "gpu.efficiency.gemm.compute_share", "host.calls.launch", "gpu.hbm.capacity"})
    EXPECT_FALSE(number(scenario_, name).is_whole) << name;
}

TEST_F(VariedNumberTest, AValueStandsWhereAPersonWouldTypeIt) {
  scenario_.policies = {"checkpoint", "offload:what=activations,min_bytes=2MiB"};
  scenario_.budget = "60%";
  scenario_.pager = "lru";
  const auto with = [&](const char* name, double value) {
    return to_text(with_value(scenario_, number(scenario_, name), value));
  };
  const std::string own = to_text(scenario_);
  EXPECT_NE(with("gpu.hbm.bandwidth", 1632.75).find("set=gpu.hbm.bandwidth=1632.75GB/s"), std::string::npos);
  EXPECT_NE(with("scale.host", 1.05).find("scale=host=1.05"), std::string::npos);
  EXPECT_NE(with("offload.min_bytes", 2.5).find("policy=offload:what=activations,min_bytes=2.5MiB"), std::string::npos);
  EXPECT_NE(with("offload.fraction", 0.5).find("min_bytes=2MiB,fraction=0.5"), std::string::npos) << "a default";
  EXPECT_NE(with("budget", 57).find("budget=57%"), std::string::npos);
  const std::string way = with("hbm to host", 13);
  EXPECT_NE(way.find("set=link.pcie_d2h.bandwidth=13GB/s"), std::string::npos) << way;
  EXPECT_NE(way.find("set=link.pcie_uplink_d2h.bandwidth=13GB/s"), std::string::npos) << way;
  EXPECT_EQ(way.find("h2d"), std::string::npos) << "the other direction stays";
  EXPECT_EQ(to_text(scenario_), own);
}

TEST_F(VariedNumberTest, AnOverrideIsTheValueThatIsVaried) {
  scenario_.settings = {"gpu.hbm.bandwidth=2TB/s"};
  const VariedNumber bandwidth = number(scenario_, "gpu.hbm.bandwidth");
  EXPECT_EQ(bandwidth.value, 2);
  EXPECT_EQ(bandwidth.unit, "TB/s");
}

// A policy's first parameter may stand without its name.
TEST_F(VariedNumberTest, AParameterWithoutItsNameIsReplacedToo) {
  scenario_.policies = {"batch:8"};
  EXPECT_NE(to_text(with_value(scenario_, number(scenario_, "batch.to"), 9)).find("policy=batch:to=9"),
            std::string::npos);
}

TEST_F(VariedNumberTest, ANameThatIsNoneIsRefusedWithTheNearest) {
  const VariedNumbers all = varied_numbers(study_, scenario_);
  EXPECT_EQ(selected(all, {"gpu.hbm.*"}).numbers.size(), 3u);
  EXPECT_EQ(selected(all, {}).numbers.size(), all.numbers.size());
  try {
    selected(all, {"gpu.hbm.bandwith"});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("gpu.hbm.bandwidth"), std::string::npos) << error.what();
  }
}

TEST_F(VariedNumberTest, QuantitiesComeApart) {
  double value = 0;
  std::string unit;
  EXPECT_TRUE(split_quantity("3.35 TB/s", value, unit));
  EXPECT_EQ(value, 3.35);
  EXPECT_EQ(unit, "TB/s");
  EXPECT_TRUE(split_quantity("60%", value, unit));
  EXPECT_EQ(unit, "%");
  for (const char* text : {"auto", "", "1 MiB: 0.42, 16 MiB: 0.95"})
    EXPECT_FALSE(split_quantity(text, value, unit)) << text;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
