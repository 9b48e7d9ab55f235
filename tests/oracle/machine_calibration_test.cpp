// Do machine files reproduce the published tables that they were fitted to, each component within 5 % in the median or
// listed with a reason?
#include <gtest/gtest.h>

#include <algorithm>

#include "models/hw/machine_file.h"
#include "sim/error.h"
#include "tests/support/shared_data.h"
#include "validate/published/components.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(MachineCalibration, EveryComponentIsWithinItsLimit) {
  if (!shared_data()) GTEST_SKIP() << "MEMWALL_SHARED names no folder with data";
  const std::filesystem::path tables = *shared_data() / "published";
  std::size_t components = 0, points = 0, listed = 0;
  for (const Machine& machine : whole_machines()) {
    for (const ComponentCheck& check : check_components(machine.name, tables)) {
      SCOPED_TRACE(machine.name + " " + check.rows.name);
      ++components;
      points += check.points.size();
      listed += check.rows.limit > 0.05;
      for (const ComponentPoint& p : check.points) EXPECT_TRUE(p.measured > 0 && p.predicted > 0) << p.what;
      if (check.rows.held_out) continue;
      EXPECT_TRUE(check.within()) << "median residual " << check.median << ", worst at "
                                  << check.points[check.worst].what;
      EXPECT_LE(check.rows.limit, 0.15) << "a reason does not excuse everything";
      if (check.rows.limit > 0.05) {
        EXPECT_GT(check.rows.reason.size(), 20u);
      }
    }
  }
  EXPECT_GT(components, 100u);
  EXPECT_GT(points, 4000u);
  EXPECT_LT(listed, components / 6);
}

TEST(MachineCalibration, WhatWasHeldOutIsNearlyAsGood) {
  if (!shared_data()) GTEST_SKIP() << "MEMWALL_SHARED names no folder with data";
  std::size_t held_out = 0;
  for (const char* machine : {"a100-sxm-80gb", "h100-sxm-80gb", "h200-sxm-141gb", "l40s", "mi300x"}) {
    for (const ComponentCheck& check : check_components(machine, *shared_data() / "published")) {
      if (!check.rows.held_out) continue;
      ++held_out;
      EXPECT_LE(check.median, std::max(0.05, check.rows.limit)) << machine << " " << check.rows.name;
    }
  }
  EXPECT_GE(held_out, 14u);
}

TEST(MachineCalibration, AWrongNumberIsSeen) {
  if (!shared_data()) GTEST_SKIP() << "MEMWALL_SHARED names no folder with data";
  const Machine wrong = load_machine("h200-sxm-141gb", {"gpu.hbm.bandwidth=6TB/s"});
  for (const ComponentRows& rows : component_rows("h200-sxm-141gb"))
    if (rows.measure == ComponentMeasure::stream) {
      EXPECT_FALSE(check_component(wrong, rows, *shared_data() / "published").within());
    }
}

TEST(MachineCalibration, ATableThatIsNotThereIsASentence) {
  const auto rows = component_rows("h200-sxm-141gb");
  ASSERT_FALSE(rows.empty());
  EXPECT_THROW(check_component(load_machine("h200-sxm-141gb"), rows.front(), "/nonexistent"), InputError);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
