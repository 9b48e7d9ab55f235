// Which node, rail and rack is a rank's GPU in?
#include "sim/machine/gpu_place.h"

#include <gtest/gtest.h>

#include <vector>

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Nodes of eight GPUs on a switch with four adapters, four nodes behind one leaf switch.
Machine cluster() {
  Machine m;
  m.links = {{.name = "hbm", .bandwidth = 3e12},
             {.name = "host_dram", .bandwidth = 2e11, .sharers = 8},
             {.name = "nvlink", .bandwidth = 4e11},
             {.name = "network", .bandwidth = 5e10, .sharers = 2},
             {.name = "spine", .bandwidth = 5e10, .sharers = 32}};
  m.tiers = {{.name = "hbm", .tier_class = TierClass::device, .memory_link = 0},
             {.name = "host", .tier_class = TierClass::host, .memory_link = 1}};
  m.hbm_link = 0;
  m.dram_link = 1;
  m.fabrics.resize(3);
  m.fabrics[0].name = "nvlink";
  m.fabrics[0].links = {2, 0};
  m.fabrics[0].max_ranks = 8;
  m.fabrics[1].name = "leaf";
  m.fabrics[1].links = {3, 0};
  m.fabrics[1].max_ranks = 32;
  m.fabrics[2].name = "spine";
  m.fabrics[2].links = {3, 4, 0};
  return m;
}

TEST(GpuPlace, NumbersSayNodeRailAndRack) {
  const GpuPlaces places(cluster());
  EXPECT_EQ(places.node_size(), 8u);
  EXPECT_EQ(places.of(0), (GpuPlace{0, 0, 0, 0}));
  EXPECT_EQ(places.of(11), (GpuPlace{1, 3, 1, 0})) << "GPUs 2 and 3 have the second adapter";
  EXPECT_EQ(places.of(39), (GpuPlace{4, 7, 3, 1}));
  EXPECT_EQ(places.within_node(39), "GPU 7, rail 3, rack 1");
  EXPECT_EQ(places.rank_text(39), "rank 39 (node 4)");
}

TEST(GpuPlace, OfAGroupNodesRailsAndRacksAreCounted) {
  const GpuPlaces places(cluster());
  const auto text = [&](std::vector<std::uint32_t> members) { return places.group_text(members); };
  EXPECT_EQ(text({8, 9, 15}), "3 ranks in node 1");
  EXPECT_EQ(text({2, 10}), "2 ranks over 2 nodes, rail 1");
  EXPECT_EQ(text({0, 1, 2, 8}), "4 ranks over 2 nodes, 2 rails");
  EXPECT_EQ(text({0, 32}), "2 ranks over 2 nodes, rail 0, 2 racks");
}

TEST(GpuPlace, WithoutAHostTheFabricsSayWhatANodeIs) {
  Machine m = cluster();
  m.tiers.pop_back();
  EXPECT_EQ(GpuPlaces(m).of(11), (GpuPlace{1, 3, 1, 0}));
  m.fabrics.resize(1);
  EXPECT_EQ(GpuPlaces(m).node_size(), 0u);
  EXPECT_EQ(GpuPlaces(m).of(11), (GpuPlace{0, 11, {}, {}}));
  EXPECT_EQ(GpuPlaces(m).rank_text(11), "rank 11");
  EXPECT_EQ(GpuPlaces(m).group_text(std::vector<std::uint32_t>{1, 11}), "2 ranks");
}

TEST(GpuPlace, WhatReachesAllGpusIsNoRack) {
  Machine m = cluster();
  m.fabrics.pop_back();
  EXPECT_EQ(GpuPlaces(m).of(39), (GpuPlace{4, 7, 3, {}}));
}

// Two GPUs on a bridge within a node of four.
TEST(GpuPlace, AFabricWithinTheNodeIsNoRail) {
  Machine m = cluster();
  m.links[1].sharers = 4;
  m.fabrics[0].max_ranks = 2;
  m.fabrics[1].max_ranks = 4;
  m.fabrics.pop_back();
  EXPECT_EQ(GpuPlaces(m).of(5), (GpuPlace{1, 1, {}, {}}));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
