// Is a machine under settings what its file says with them, and nothing of it left in the next?
#include "models/hw/machine_variants.h"

#include <gtest/gtest.h>

#include "models/hw/machine_file.h"
#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

double hbm_bandwidth(const Machine& machine) { return machine.links[machine.hbm_link].bandwidth; }

TEST(MachineVariants, HoldTheirOwnSettingsAlone) {
  const MachineVariants variants("a100-sxm-80gb");
  const double plain = hbm_bandwidth(load_machine("a100-sxm-80gb"));
  for (const std::string value : {"1000GB/s", "3TB/s"}) {
    const std::vector<std::string> settings{"gpu.hbm.bandwidth=" + value};
    EXPECT_EQ(hbm_bandwidth(variants.with(settings)), hbm_bandwidth(load_machine("a100-sxm-80gb", settings)));
    EXPECT_NE(hbm_bandwidth(variants.with(settings)), plain) << "the control";
    EXPECT_EQ(hbm_bandwidth(variants.with({})), plain);
  }
}

TEST(MachineVariants, RefuseWhatTheFileRefuses) {
  EXPECT_THROW(MachineVariants("no-such-machine"), UsageError);
  const MachineVariants variants("a100-sxm-80gb");
  EXPECT_THROW(variants.with({"gpu.hbm.bandwith=1TB/s"}), UsageError);
  EXPECT_EQ(hbm_bandwidth(variants.with({})), hbm_bandwidth(load_machine("a100-sxm-80gb")));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
