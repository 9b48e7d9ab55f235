// Do the estimates of NCCL's tuner come out as its formulas give them? The figures are those of sm90 with a ring of
// eight channels of 40 GB/s (shared/spec/parallelism.md, G12).
#include "models/hw/nccl_estimate.h"

#include <gtest/gtest.h>

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr double kMiB = 1 << 20;
constexpr auto kReduce = CollectiveKind::all_reduce;

NcclTopology hopper(std::uint32_t ranks, std::uint32_t nodes) {
  NcclTopology t;
  t.ranks = ranks;
  t.nodes = nodes;
  t.compute_major = 9;
  t.channels = 8;
  t.ring_bandwidth = 320e9;
  return t;
}

void expect(const std::optional<NcclEstimate>& e, double latency_us, double gigabytes_per_second) {
  ASSERT_TRUE(e);
  EXPECT_NEAR(e->latency * 1e6, latency_us, 0.051) << e->name();
  EXPECT_NEAR(e->algorithm_bandwidth / 1e9, gigabytes_per_second, 0.0051) << e->name();
}

TEST(NcclEstimate, IsThatOfNcclsTuner) {
  const NcclTopology node = hopper(8, 1);
  expect(nccl_estimate(node, kReduce, 64 * kMiB, NcclAlgorithm::ring, NcclProtocol::simple), 56.0, 182.86);
  expect(nccl_estimate(node, kReduce, kMiB, NcclAlgorithm::ring, NcclProtocol::ll), 15.0, 80.57);
  expect(nccl_estimate(node, CollectiveKind::all_gather, 64 * kMiB, NcclAlgorithm::ring, NcclProtocol::simple), 32.2,
         365.71);
  // 1.4 times 131.6 us: the latency of large all-reduces across nodes.
  expect(nccl_estimate(hopper(16, 2), kReduce, 64 * kMiB, NcclAlgorithm::ring, NcclProtocol::simple), 184.2, 170.67);
  const auto tree = nccl_estimate(hopper(16, 2), kReduce, 64 * kMiB, NcclAlgorithm::tree, NcclProtocol::simple);
  ASSERT_TRUE(tree);
  EXPECT_NEAR(tree->latency * 1e6, 92.4, 0.051);
}

TEST(NcclEstimate, TheSwitchWinsWhereMessagesAreLarge) {
  NcclTopology node = hopper(8, 1);
  node.in_switch_bandwidth = 476e9;
  expect(nccl_estimate(node, kReduce, kMiB, NcclAlgorithm::nvls, NcclProtocol::simple), 25.0, 272.0);
  EXPECT_EQ(nccl_choice(node, kReduce, 64 * kMiB)->name(), "NVLS");
  EXPECT_EQ(nccl_choice(node, kReduce, kMiB)->name(), "ring LL") << "28.0 us against 28.9";
  EXPECT_FALSE(nccl_estimate(node, CollectiveKind::broadcast, kMiB, NcclAlgorithm::nvls, NcclProtocol::simple));
}

TEST(NcclEstimate, ATreeGrowsWithTheLogarithmOfTheNodes) {
  // 25 MiB among 1,024 ranks: by a ring of Simple 8.4 + 1792 x 3.4 + 254 x 14 us, 9.7 ms and more.
  const NcclTopology job = hopper(1024, 128);
  EXPECT_GT(nccl_estimate(job, kReduce, 25 * kMiB, NcclAlgorithm::ring, NcclProtocol::simple)->seconds(25 * kMiB),
            9e-3);
  const auto choice = nccl_choice(job, kReduce, 25 * kMiB);
  EXPECT_EQ(choice->algorithm, NcclAlgorithm::tree);
  EXPECT_LT(choice->seconds(25 * kMiB), 1e-3);
}

TEST(NcclEstimate, OneGpuPerNodeMayGatherByPat) {
  NcclTopology t = hopper(16, 16);
  const auto pat = nccl_estimate(t, CollectiveKind::all_gather, kMiB, NcclAlgorithm::pat, NcclProtocol::simple);
  expect(pat, 8 + 4 * 14 / 3.5 + 2.8 * 16, 320 * 0.75 * 16 / 15);
  EXPECT_FALSE(
      nccl_estimate(hopper(16, 2), CollectiveKind::all_gather, kMiB, NcclAlgorithm::pat, NcclProtocol::simple));
}

TEST(NcclEstimate, SaysNothingOfWhatTheTunerIsNotAsked) {
  for (const auto kind : {CollectiveKind::all_to_all, CollectiveKind::send_receive, CollectiveKind::barrier})
    EXPECT_FALSE(nccl_choice(hopper(8, 1), kind, kMiB));
  EXPECT_FALSE(nccl_choice(hopper(1, 1), kReduce, kMiB));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
