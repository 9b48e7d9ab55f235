// Are the machines named that an unknown name may mean, and few?
#include "models/hw/near_machines.h"

#include <gtest/gtest.h>

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::vector<std::string> kKnown = {
    "a100-pcie-80gb", "a100-sxm-40gb", "a100-sxm-80gb", "h100-pcie-80gb", "h100-sxm-80gb", "l4", "t4"};
using Names = std::vector<std::string>;

TEST(NearMachines, HaveMostOfTheWords) {
  EXPECT_EQ(near_machines("h100", kKnown), (Names{"h100-sxm-80gb", "h100-pcie-80gb"})) << "what it begins first";
  EXPECT_EQ(near_machines("A100_80GB", kKnown), (Names{"a100-sxm-80gb", "a100-pcie-80gb"}));
  EXPECT_EQ(near_machines("sxm a100", kKnown), (Names{"a100-sxm-40gb", "a100-sxm-80gb"}));
}

TEST(NearMachines, AreNearByLettersWhereNoWordIs) {
  EXPECT_EQ(near_machines("h10-sxm80gb", kKnown), Names{"h100-sxm-80gb"});
  EXPECT_EQ(near_machines("tpu-v5e", kKnown), Names{});
}

TEST(NearMachines, AreAtMostFive) {
  EXPECT_EQ(near_machines("x", {"x-1", "x-2", "x-3", "x-4", "x-5", "x-6"}).size(), 5u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
