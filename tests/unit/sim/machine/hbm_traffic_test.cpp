// Of what kernels read and write, what reaches HBM: by L2's share of the working set, and by the time there was.
#include "sim/machine/hbm_traffic.h"

#include <gtest/gtest.h>

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr double kBandwidth = 1e12;

Gpu gpu_with_l2() {
  Gpu gpu;
  gpu.l2_bytes = 10'000'000;
  gpu.l2_bandwidth = 4e12;
  gpu.l2_kept = 0.5;
  gpu.l2_lost = 2;
  return gpu;
}

Op kernel(Bytes bytes, Duration duration, std::uint16_t kernels = 1) {
  Op op;
  op.kind = OpKind::kernel;
  op.bytes = bytes;
  op.duration = duration;
  op.kernels = kernels;
  return op;
}

TEST(HbmTraffic, IsNothingWhileL2HoldsTheWorkingSetAndAllFromTwiceItsSizeOn) {
  const Gpu gpu = gpu_with_l2();
  EXPECT_EQ(hbm_traffic(gpu, kBandwidth, kernel(5'000'000, microseconds(1000))), 0);
  EXPECT_EQ(hbm_traffic(gpu, kBandwidth, kernel(20'000'000, microseconds(1000))), 20'000'000);
  // Half of the way from 5 to 20 MB: half of the bytes are missing.
  EXPECT_EQ(hbm_traffic(gpu, kBandwidth, kernel(12'500'000, microseconds(1000))), 6'250'000);
  // Two kernels have a working set each.
  EXPECT_EQ(hbm_traffic(gpu, kBandwidth, kernel(25'000'000, microseconds(1000), 2)), 12'500'000);
}

TEST(HbmTraffic, IsNeverMoreThanHbmMovesInTheTime) {
  EXPECT_EQ(hbm_traffic(Gpu{}, kBandwidth, kernel(40'000'000, microseconds(10))), 10'000'000);
  EXPECT_EQ(hbm_traffic(Gpu{}, kBandwidth, kernel(40'000'000, microseconds(100))), 40'000'000) << "no L2 is stated";
  EXPECT_EQ(hbm_traffic(gpu_with_l2(), kBandwidth, kernel(0, microseconds(100))), 0);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
