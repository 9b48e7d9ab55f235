// Is an override told that changes nothing though one run alone cannot show it, and is nothing said of one that does?
#include "study/overrides/override_effect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "study/study.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::string told_of(const Scenario& changes) {
  Scenario scenario = changes;
  scenario.step = {std::string(MEMWALL_SOURCE) + "/traces/samples/gpt_124m.mwt"};
  Study study;
  const auto run = study.run(scenario, {.compare_to_base = true, .bound_step = true}).run;
  return fmt::format("{}", fmt::join(run.warnings, "\n"));
}

TEST(OverrideEffect, NamesTheFabricThatIsUsedInstead) {
  EXPECT_EQ(told_of({.settings = {"fabric.nvlink.bus_bandwidth=500GB/s"}, .policies = {"zero:stage=3,ranks=16"}}),
            "fabric.nvlink.bus_bandwidth=500GB/s changes nothing in this run: its collectives go over network.");
  EXPECT_EQ(told_of({.settings = {"fabric.nvlink.bus_bandwidth=500GB/s"}, .policies = {"zero:stage=3,ranks=8"}}), "");
}

TEST(OverrideEffect, SaysThatRanksAreNoNumberOfTheMachine) {
  EXPECT_EQ(told_of({.settings = {"gpu_count=1"}, .policies = {"zero:stage=2,ranks=8"}}),
            "gpu_count=1 changes nothing in this run: how many ranks run (8) is for the step and its policies to say.");
}

TEST(OverrideEffect, IsToldBehindAPolicyThatMayAskForPrices) {
  const std::vector<std::string> zero = {"zero:stage=2,ranks=8"};
  EXPECT_EQ(told_of({.settings = {"host.cores=2"}, .policies = zero}), "host.cores=2 changes nothing in this run.");
  EXPECT_EQ(told_of({.settings = {"gpu.peak.fp64.rate=1PFLOP/s"}, .policies = zero}),
            "gpu.peak.fp64.rate=1PFLOP/s changes nothing in this run but the peak that MFU is held against.");
}

// Each against the run without it alone, not against the one without any.
TEST(OverrideEffect, ChecksEachOfSeveral) {
  EXPECT_EQ(told_of({.machine = "h100-sxm-80gb",
                     .settings = {"host.cores=2", "gpu.hbm.bandwidth=1TB/s"},
                     .policies = {"zero:stage=2,ranks=8"}}),
            "host.cores=2 changes nothing in this run.");
}

TEST(OverrideEffect, IsSilentWhereTheIntervalOrTheMemoryDiffers) {
  EXPECT_EQ(told_of({.settings = {"fabric.nvlink.residual=0.5"}, .policies = {"zero:stage=2,ranks=8"}}), "");
  EXPECT_EQ(told_of({.settings = {"pcie=gen5"}, .policies = {"offload:what=activations,to=host"}}), "");
}

// Wear is no time, and is told all the same; what is only read has none.
TEST(OverrideEffect, IsSilentWhereDrivesLastLonger) {
  const std::vector<std::string> offload = {"offload:what=optimizer,to=nvme"};
  EXPECT_EQ(told_of({.machine = "h100-sxm-80gb", .settings = {"tier.nvme.endurance=14PB"}, .policies = offload}), "");
  EXPECT_EQ(told_of({.machine = "rtx-3090",
                     .settings = {"tier.nvme.write_cache=100GB", "tier.nvme.sustained_write_bandwidth=0.5GB/s"},
                     .policies = offload}),
            "")
      << "after how many steps the cache is full";
  EXPECT_EQ(told_of({.machine = "rtx-3090", .settings = {"tier.nvme.write_cache=100GB"}, .policies = offload}),
            "tier.nvme.write_cache=100GB changes nothing in this run.")
      << "the drive empties it in time";
  EXPECT_EQ(told_of({.machine = "h100-sxm-80gb", .settings = {"tier.nvme.endurance=14PB"}}),
            "tier.nvme.endurance=14PB changes no time: nothing in this run is kept in nvme.");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
