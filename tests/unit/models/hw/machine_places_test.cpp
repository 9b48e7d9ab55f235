// Do the machine files say which GPUs are in one node?
#include <gtest/gtest.h>

#include "models/hw/machine_file.h"
#include "sim/machine/gpu_place.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// A file of one node says how many GPUs that has; a cluster's file says how many there are in all.
TEST(MachinePlaces, ANodeOfEveryMachineHasTheGpusThatItsFileSays) {
  const std::vector<Machine> machines = sound_machines(nullptr);
  ASSERT_GT(machines.size(), 20u);
  for (const Machine& machine : machines) {
    const bool is_cluster = machine.name == "v100-sxm3-32gb-512gpu";
    EXPECT_EQ(GpuPlaces(machine).node_size(), is_cluster ? 16u : machine.gpu_count) << machine.name;
    EXPECT_EQ(GpuPlaces(machine).of(machine.gpu_count).rack, std::nullopt) << machine.name;
  }
}

TEST(MachinePlaces, RailsAreTheAdaptersOfANode) {
  const auto rail = [](const char* name, std::uint32_t number) {
    return GpuPlaces(load_machine(name)).of(number).rail;
  };
  EXPECT_EQ(rail("dgx-a100-80gb", 11), 3u) << "eight adapters for eight GPUs";
  EXPECT_EQ(rail("aws-p4d", 11), 1u) << "four of them";
  EXPECT_EQ(rail("pcie-8x-rtx-4090", 11), std::nullopt) << "one";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
