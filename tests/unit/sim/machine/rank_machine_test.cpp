// Has a rank of a folded program its part of what the ranks of a node share, and an unfolded one the whole?
#include "sim/machine/rank_machine.h"

#include <gtest/gtest.h>

#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Node {
  Machine machine = test_machine();
  std::size_t host = static_cast<std::size_t>(machine.tier("host"));
  std::size_t hbm = static_cast<std::size_t>(machine.tier("hbm"));

  explicit Node(std::uint32_t sharers) {
    machine.tiers[host].capacity = 2400;
    machine.tiers[host].unavailable = 80;
    machine.tiers[host].memory_link = machine.dram_link;
    machine.links[machine.dram_link].sharers = sharers;
  }
  RankMachine of(std::uint32_t ranks) const {
    Trace trace;
    trace.ranks = ranks;
    return machine_of_ranks(machine, trace);
  }
};

TEST(RankMachine, GivesAFoldedRankItsPartOfTheHost) {
  const Node node(8);
  EXPECT_EQ(node.of(8).tiers[node.host].capacity, 300);
  EXPECT_EQ(node.of(8).tiers[node.host].usable(), 290);
  EXPECT_EQ(node.of(2).tiers[node.host].capacity, 1200);
  EXPECT_EQ(node.of(64).tiers[node.host].capacity, 300) << "eight to a node";
  EXPECT_EQ(node.of(8).one.tiers[node.host].capacity, 2400);
  EXPECT_EQ(node.of(8).tiers[node.hbm].capacity, node.machine.tiers[node.hbm].capacity);
}

TEST(RankMachine, LeavesAHostThatNobodySharesWhole) {
  EXPECT_EQ(Node(8).of(1).tiers[Node(8).host].capacity, 2400);
  EXPECT_EQ(Node(1).of(8).tiers[Node(1).host].capacity, 2400);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
