// Do collectives cost what the models of their fabric say, and which model is taken?
#include "models/hw/collective_cost.h"

#include <gtest/gtest.h>

#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Machine two_levels() {
  Machine m;
  m.name = "two levels";
  Fabric node, network;
  node.name = "node";
  node.bus_bandwidth = 100e9;
  node.step_latency = microseconds(1);
  node.base_latency = microseconds(5);
  node.max_ranks = 4;
  network.name = "network";
  network.bus_bandwidth = 10e9;
  network.step_latency = microseconds(10);
  m.fabrics = {node, network};
  return m;
}

CollectiveModel model(const char* name, CollectiveAlgorithm algorithm, double bandwidth, Duration step) {
  CollectiveModel l;
  l.name = name;
  l.algorithm = algorithm;
  l.bus_bandwidth = bandwidth;
  l.step_latency = step;
  return l;
}

constexpr auto kReduce = CollectiveKind::all_reduce;

TEST(CollectiveCost, AFabricWithoutLawsIsARing) {
  const Machine m = two_levels();
  // 5 us + 6 steps of 1 us + 1.5 MB at 100 GB/s.
  EXPECT_EQ(collective_cost(m, kReduce, 1'000'000, 4).duration, microseconds(26));
  EXPECT_EQ(collective_cost(m, kReduce, 1'000'000, 4).sent, 1'500'000);
  EXPECT_EQ(collective_cost(m, CollectiveKind::all_gather, 1'000'000, 4).duration, from_seconds(15.5e-6));
  // Over the network all of 14 steps cost the same.
  EXPECT_EQ(collective_cost(m, kReduce, 0, 8).duration, microseconds(140));
  EXPECT_EQ(collective_cost(m, kReduce, 1, 1).duration, Duration{});
}

TEST(CollectiveCost, StepsWithinANodeCostWhatTheyCostThere) {
  Machine m = two_levels();
  CollectiveModel ring = model("ring", CollectiveAlgorithm::ring, 10e9, microseconds(10));
  ring.inner_steps = true;
  ring.inner_step_latency = microseconds(1);
  m.fabrics[1].collectives = {ring};
  // 16 ranks are four nodes: 6 steps between nodes, 24 within them.
  EXPECT_EQ(collective_cost(m, kReduce, 0, 16).duration, microseconds(84));
  CollectiveModel tree = ring;
  tree.name = "tree";
  tree.algorithm = CollectiveAlgorithm::tree;
  m.fabrics[1].collectives.push_back(tree);
  // Two levels of a tree twice, and three ranks of a node twice.
  EXPECT_EQ(collective_cost(m, kReduce, 0, 16).duration, microseconds(46));
  EXPECT_EQ(collective_cost(m, kReduce, 0, 16).model, "tree");
  EXPECT_EQ(collective_cost(m, CollectiveKind::all_gather, 0, 16).model, "ring") << "a tree gathers nothing";
}

TEST(CollectiveCost, TheFastestLawThatFitsIsTaken) {
  Machine m = two_levels();
  CollectiveModel ring = model("ring", CollectiveAlgorithm::ring, 100e9, microseconds(1));
  CollectiveModel in_switch = model("nvls", CollectiveAlgorithm::in_switch, 150e9, {});
  in_switch.base_latency = microseconds(20);
  in_switch.min_ranks = 3;
  m.fabrics[0].collectives = {ring, in_switch};
  EXPECT_EQ(collective_cost(m, kReduce, 1000, 4).model, "ring") << "small: its base latency is too long";
  EXPECT_EQ(collective_cost(m, kReduce, 1'000'000'000, 4).model, "nvls");
  EXPECT_EQ(collective_cost(m, kReduce, 1'000'000'000, 2).model, "ring") << "for pairs there is no such model";
  EXPECT_EQ(collective_cost(m, CollectiveKind::all_to_all, 1'000'000'000, 4).model, "ring");
  // What the switch adds is sent once and a quarter.
  EXPECT_EQ(collective_cost(m, kReduce, 1'000'000'000, 4).sent, 1'250'000'000);
}

TEST(CollectiveCost, AMessageIsFoundFromWhatARingSendsWhateverTheLaw) {
  const auto pricer = make_pricer(load_machine("h200-sxm-141gb"));
  EXPECT_EQ(pricer->message_bytes(kReduce, 1750, 8), 1000);
  EXPECT_EQ(pricer->wire_bytes(kReduce, Bytes{1} << 30, 8), (Bytes{1} << 30) / 8 * 9) << "reduced in the switch";
  EXPECT_EQ(pricer->message_bytes(CollectiveKind::barrier, 10, 8), 0);
}

TEST(CollectiveCost, BeyondEveryFabricIsRefused) {
  const Machine m = load_machine("v100-sxm3-32gb-512gpu");
  EXPECT_GT(collective_cost(m, kReduce, 1 << 20, 512).duration, collective_cost(m, kReduce, 1 << 20, 16).duration);
  EXPECT_THROW(collective_cost(m, kReduce, 1 << 20, 513), UsageError);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
