// Does calibration find what page-locking costs, and a container's limit, in rows and environment that hold them?
#include <gtest/gtest.h>

#include <cmath>

#include "models/hw/machine_file.h"
#include "tests/support/known_measurements.h"
#include "validate/calibrate/calibrate.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr double kCall = 150e-6, kRate = 5e9;  // seconds, bytes per second

Machine calibrated(const char* method, const Environment& more = {}) {
  KnownMeasurements measured(load_machine("h100-sxm-80gb"), 0, 1);
  measured.everything();
  for (Bytes bytes = KiB(4); bytes <= GiB(1); bytes *= 4)
    measured.add("host_alloc_pinned", {{"bytes", std::to_string(bytes)}, {"method", method}},
                 kCall + static_cast<double>(bytes) / kRate);
  for (const auto& [key, value] : more) measured.set.environment.emplace_back(key, value);
  return parse_machine(calibrate(measured.set, {}).text, "calibrated");
}

TEST(CalibrateHostMemory, FindsACallAndABytesShareOfPageLocking) {
  const Machine found = calibrated("cudaHostAlloc");
  EXPECT_NEAR(to_seconds(found.host.pinned_allocation), kCall, 0.01 * kCall);
  EXPECT_NEAR(found.host.pinning, kRate, 0.01 * kRate);
}

TEST(CalibrateHostMemory, TakesTheSystemsPartOfItForNoCall) {
  const Machine base = load_machine("h100-sxm-80gb"), found = calibrated("mmap_and_mlock");
  EXPECT_EQ(found.host.pinned_allocation, base.host.pinned_allocation);
  EXPECT_EQ(found.host.pinning, base.host.pinning);
}

TEST(CalibrateHostMemory, TakesOverAContainersLimit) {
  const Environment limited{{"memory_bytes", std::to_string(GiB(512))},
                            {"memory_limit_bytes", std::to_string(GiB(96))}};
  const Machine found = calibrated("cudaHostAlloc", limited);
  EXPECT_EQ(found.tiers[static_cast<std::size_t>(found.tier("host"))].usable(), GiB(96));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
