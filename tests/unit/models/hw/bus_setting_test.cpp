// Do overrides that name a bus change all that depends on it, with a source, and are others refused by name?
#include "models/hw/bus_setting.h"

#include <gtest/gtest.h>

#include "models/hw/collective_cost.h"
#include "models/hw/machine_file.h"
#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

double rate_between(const Machine& m, const char* from, const char* to) {
  const Route* route = m.route(m.tier(from), m.tier(to), false);
  return route == nullptr ? 0 : route->bandwidth;
}

const Fabric& fabric_called(const Machine& machine, const std::string& name) {
  for (const Fabric& fabric : machine.fabrics)
    if (fabric.name == name) return fabric;
  throw std::runtime_error("no fabric " + name);
}

std::string refusal(const char* machine, const std::string& setting) {
  try {
    load_machine(machine, {setting});
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(BusSetting, PcieMovesTheUplinkToo) {
  const Machine gen4 = load_machine("a100-sxm-80gb"), gen5 = load_machine("a100-sxm-80gb", {"pcie=gen5"});
  EXPECT_EQ(rate_between(gen4, "host", "hbm"), 26e9);
  EXPECT_EQ(rate_between(gen5, "host", "hbm"), 55.4e9);
  EXPECT_EQ(rate_between(gen5, "hbm", "host"), 55.1e9);
  EXPECT_NEAR(fabric_called(gen5, "pcie").bus_bandwidth, 18.6e9 * 55.1 / 26, 1e6) << "the slower direction decides";
  EXPECT_EQ(fabric_called(gen5, "nvlink"), fabric_called(gen4, "nvlink"));
  const Route* pageable = gen5.route(gen5.tier("host"), gen5.tier("hbm"), true);
  EXPECT_EQ(pageable->bandwidth, 5.7e9) << "a thread of the host";
  EXPECT_EQ(rate_between(load_machine("a100-sxm-80gb", {"pcie=gen3"}), "host", "hbm"), 12.35e9);
  EXPECT_EQ(rate_between(load_machine("a100-sxm-80gb", {"pcie=gen6"}), "host", "hbm"), 110.8e9);
  EXPECT_EQ(load_machine("a100-sxm-80gb", {"pcie=gen4"}), gen4) << "which it is";
}

TEST(BusSetting, PcieTakesABandwidth) {
  const Machine machine = load_machine("a100-sxm-80gb", {"pcie=52GB/s"});
  EXPECT_EQ(rate_between(machine, "host", "hbm"), 52e9);
  EXPECT_EQ(rate_between(machine, "hbm", "host"), 52e9);
  EXPECT_NEAR(fabric_called(machine, "pcie").bus_bandwidth, 2 * 18.6e9, 1e6);
  for (const char* setting : {"pcie=0GB/s", "pcie=52", "pcie=52GB", "pcie=-1GB/s"})
    EXPECT_NE(refusal("a100-sxm-80gb", setting).find("or a bandwidth (30GB/s)"), std::string::npos) << setting;
}

TEST(BusSetting, SaysWhereItsNumbersComeFrom) {
  for (const MachineNumber& number : machine_numbers("a100-sxm-80gb", {"pcie=gen5"})) {
    if (number.path == "link.pcie_uplink_h2d.bandwidth") {
      EXPECT_EQ(number.value, "55.4 GB/s");
      EXPECT_EQ(number.source, "--set pcie=gen5: nvbandwidth, pinned copies, eight H200 (ml-engineering)");
    }
    if (number.path == "fabric.pcie.bus_bandwidth") {
      EXPECT_EQ(number.source, "--set pcie=gen5: 18.6 GB/s in proportion to its PCIe links");
    }
  }
}

TEST(BusSetting, ALaterNumberWins) {
  const Machine machine = load_machine("a100-sxm-80gb", {"pcie=gen5", "link.pcie_h2d.bandwidth=40GB/s"});
  EXPECT_EQ(rate_between(machine, "host", "hbm"), 40e9);
  EXPECT_EQ(rate_between(machine, "hbm", "host"), 55.1e9);
}

TEST(BusSetting, WithoutNvlinkRanksTalkOverPcie) {
  const Machine with = load_machine("h100-sxm-80gb"), without = load_machine("h100-sxm-80gb", {"nvlink=off"});
  ASSERT_NE(without.fabric(8), nullptr);
  EXPECT_EQ(with.fabric(8)->name, "nvlink");
  EXPECT_EQ(without.fabric(8)->name, "pcie");
  EXPECT_EQ(without.fabric(16)->name, "network");
  EXPECT_GT(collective_cost(without, CollectiveKind::all_reduce, 1 << 28, 8).duration,
            5 * collective_cost(with, CollectiveKind::all_reduce, 1 << 28, 8).duration);
  EXPECT_EQ(rate_between(with, "hbm", "peer_hbm"), 396.4e9);
  EXPECT_EQ(rate_between(without, "hbm", "peer_hbm"), 37.2e9) << "as measured with peer access off";
  const Route* route = without.route(without.tier("hbm"), without.tier("peer_hbm"), false);
  const auto crosses = [&](const char* link) {
    return std::find(route->links.begin(), route->links.end(), without.link(link)) != route->links.end();
  };
  EXPECT_TRUE(crosses("pcie_d2h") && crosses("pcie_h2d"));
  EXPECT_FALSE(crosses("nvlink_out"));
}

TEST(BusSetting, BothTogetherInEitherOrder) {
  const Machine a = load_machine("h100-sxm-80gb", {"nvlink=off", "pcie=gen4"});
  const Machine b = load_machine("h100-sxm-80gb", {"pcie=gen4", "nvlink=off"});
  EXPECT_EQ(a, b);
  EXPECT_NEAR(rate_between(a, "hbm", "peer_hbm"), 37.2e9 * 26 / 55.1, 1e6);
}

TEST(BusSetting, EveryMachineTakesItOrSaysWhyNot) {
  for (const MachineSummary& machine : list_machines())
    for (const char* setting : {"pcie=gen6", "nvlink=off"}) {
      try {
        const Machine changed = load_machine(machine.name, {setting});
        EXPECT_FALSE(changed == load_machine(machine.name)) << machine.name << " " << setting;
      } catch (const UsageError& error) {
        EXPECT_NE(std::string(error.what()).find("machine " + machine.name), std::string::npos) << error.what();
      }
    }
}

TEST(BusSetting, RefusesWhatItDoesNotKnow) {
  EXPECT_NE(refusal("a100-sxm-80gb", "pcie=gen7").find("expected gen3, gen4, gen5 or gen6"), std::string::npos);
  EXPECT_NE(refusal("gh200-480gb", "pcie=gen5").find("has no link whose name begins with \"pcie\""), std::string::npos);
  EXPECT_NE(refusal("gh200-480gb", "pcie=gen5").find("c2c_h2d"), std::string::npos);
  EXPECT_NE(refusal("mi300x", "nvlink=off").find("has no fabric over NVLink"), std::string::npos);
  EXPECT_NE(refusal("h100-sxm-80gb", "nvlink=5").find("expected off"), std::string::npos);
  EXPECT_NE(refusal("h100-sxm-80gb", "pci=gen5").find("nearest: \"pcie\""), std::string::npos);
}

TEST(BusSetting, KnowsWhichBusesWouldRaiseALink) {
  EXPECT_EQ(faster_buses("pcie_h2d", 26e9), (std::vector<std::string>{"pcie=gen5", "pcie=gen6"}));
  EXPECT_TRUE(faster_buses("nvme_read", 1e9).empty());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
