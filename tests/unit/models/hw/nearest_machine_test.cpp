// Is the machine that stands for an unknown GPU the one that a person would name?
#include "models/hw/nearest_machine.h"

#include <gtest/gtest.h>

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(NearestMachine, IsOfTheSameModelElseOfTheNearestNumberOfItsSeries) {
  EXPECT_EQ(nearest_machine_for_device("NVIDIA A100-PCIE-39GB", 42297524224), "a100-pcie-40gb");
  EXPECT_EQ(nearest_machine_for_device("NVIDIA H900", 85028765696), "h800-sxm-80gb");
  EXPECT_EQ(nearest_machine_for_device("AMD Instinct MI355X", 0), "mi325x");
  EXPECT_EQ(nearest_machine_for_device("NVIDIA GeForce RTX 5090", 0), "rtx-4090");
  EXPECT_EQ(nearest_machine_for_device("Somebody's Accelerator", GiB(80)), "");
  EXPECT_EQ(nearest_machine_for_device("", 0), "");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
