// Do collectives of several groups slow each other where they meet, and nowhere else? Closed forms.
#include <gtest/gtest.h>

#include "sim/engine/simulation.h"
#include "tests/support/rank_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Nodes of four GPUs; two of them share a network adapter of 10 GB/s, and NVLink carries 100 GB/s.
Machine nodes_of_four() {
  Machine m;
  m.name = "nodes of four";
  m.gpu.multiprocessors = 100;
  m.host.cores = 8;
  m.tiers = {{.name = "hbm", .tier_class = TierClass::device, .capacity = 80'000'000'000},
             {.name = "host", .tier_class = TierClass::host, .capacity = 1'000'000'000'000, .sharers = 4}};
  m.links = {{.name = "hbm", .bandwidth = 1e12},
             {.name = "host_dram", .bandwidth = 1e11, .sharers = 4},
             {.name = "nvlink", .bandwidth = 1e11},
             {.name = "network", .bandwidth = 1e10, .sharers = 2}};
  m.dram_link = 1;
  m.fabrics.resize(2);
  m.fabrics[0] = {.name = "nvlink", .links = {2, 0}, .bus_bandwidth = 1e11, .max_ranks = 4, .efficiency = {}};
  m.fabrics[1] = {.name = "network", .links = {3, 0}, .bus_bandwidth = 2e10, .efficiency = {}};
  return m;
}

// A rank that sends `bytes` in one all-reduce of the group; alone it takes a second at `rate`.
RankProgram sender(std::uint32_t number, std::uint32_t rendezvous, const std::vector<std::uint32_t>& group, Bytes bytes,
                   Duration alone) {
  RankAuthor author(number);
  author.trace().groups = {{std::to_string(group.front()), static_cast<std::uint32_t>(group.size()), group}};
  Op& op = author.trace().ops[author.meet(rendezvous, alone)];
  op.added = true;
  op.bytes = bytes;
  return std::move(author).finish();
}

std::vector<Duration> times(std::vector<RankProgram> ranks, const Machine& machine) {
  const Trace trace = joined_ranks(std::move(ranks));
  const SimulationResult result = simulate(trace, machine, {});
  std::vector<Duration> durations;
  for (OpId id = 0; id < trace.ops.size(); ++id)
    if (trace.ops[id].kind == OpKind::collective)
      durations.push_back(result.records[id].end - result.records[id].start);
  return durations;
}

constexpr Duration kSecond = microseconds(1'000'000);

TEST(GroupLinks, GroupsThatShareNoLinkDoNotSlowEachOther) {
  // {0, 1} in a node over NVLink, {2, 6} across nodes over the other adapter.
  const auto found =
      times({sender(0, 0, {0, 1}, 100'000'000'000, kSecond), sender(1, 0, {0, 1}, 100'000'000'000, kSecond),
             sender(2, 1, {2, 6}, 10'000'000'000, kSecond), sender(6, 1, {2, 6}, 10'000'000'000, kSecond)},
            nodes_of_four());
  for (const Duration each : found) EXPECT_EQ(each, kSecond);
}

// Rank 0 with 4, and another pair in the same two nodes: each would fill an adapter.
std::vector<Duration> two_pairs(std::uint32_t a, std::uint32_t b) {
  constexpr Bytes kBytes = 10'000'000'000;
  return times({sender(0, 0, {0, 4}, kBytes, kSecond), sender(a, 1, {a, b}, kBytes, kSecond),
                sender(4, 0, {0, 4}, kBytes, kSecond), sender(b, 1, {a, b}, kBytes, kSecond)},
               nodes_of_four());
}

TEST(GroupLinks, GroupsBehindOneAdapterShareItFairly) {
  for (const Duration each : two_pairs(1, 5)) EXPECT_EQ(each, 2 * kSecond) << "ranks 0 and 1 share one";
}

TEST(GroupLinks, AdaptersOfTwoPairsAreTwo) {
  for (const Duration each : two_pairs(2, 6)) EXPECT_EQ(each, kSecond);
}

TEST(GroupLinks, ARingOfWholeNodesSendsAnAdapterHalfOfWhatARankSends) {
  std::vector<RankProgram> ranks;
  const std::vector<std::uint32_t> all{0, 1, 2, 3, 4, 5, 6, 7};
  // Each rank sends 20 GB in a second; 20 GB leave the node, 10 over each of its two adapters.
  for (const std::uint32_t r : all) ranks.push_back(sender(r, 0, all, 20'000'000'000, kSecond));
  for (const Duration each : times(ranks, nodes_of_four())) EXPECT_EQ(each, kSecond);
  ranks.clear();
  for (const std::uint32_t r : all) ranks.push_back(sender(r, 0, all, 40'000'000'000, kSecond));
  for (const Duration each : times(ranks, nodes_of_four())) EXPECT_EQ(each, 2 * kSecond);
}

// --- the processor cores of a host

Trace optimizers(std::uint32_t ranks) {
  TraceBuilder builder;
  builder.trace().name = "optimizer";
  builder.trace().knowledge.timing = true;
  builder.trace().ranks = ranks;
  builder.add_thread("main");
  builder.add_stream("compute", StreamRole::compute);
  Op work;
  work.kind = OpKind::host_work;
  work.duration = kSecond;
  work.bytes = 10'000'000'000;
  work.added = true;
  builder.append(work);
  return std::move(builder).finish();
}

TEST(HostCores, OptimizersOnAllCoresTakeAsOftenAsThereAreRanks) {
  // DRAM would carry ten of them.
  EXPECT_EQ(simulate(optimizers(1), nodes_of_four(), {}).end, kSecond);
  EXPECT_EQ(simulate(optimizers(4), nodes_of_four(), {}).end, 4 * kSecond);
  EXPECT_EQ(simulate(optimizers(8), nodes_of_four(), {}).end, 4 * kSecond) << "four to a host";
}

TEST(HostCores, ThreadsThatHaveCoresOfTheirOwnDoNotWait) {
  Machine m = nodes_of_four();
  m.host.optimizer_threads = 2;
  EXPECT_EQ(simulate(optimizers(4), m, {}).end, kSecond);
  m.host.optimizer_threads = 4;
  EXPECT_EQ(simulate(optimizers(4), m, {}).end, 2 * kSecond);
  m.links[1].bandwidth = 1e10;
  EXPECT_EQ(simulate(optimizers(4), m, {}).end, 4 * kSecond) << "now the DRAM is what they share";
}

TEST(HostCores, EachNumaNodeHasItsOwn) {
  Machine m = nodes_of_four();
  m.host.numa_nodes = 2;
  m.links[1].sharers = 2;
  EXPECT_EQ(simulate(optimizers(4), m, {}).end, 2 * kSecond)
      << "two ranks to four cores, with which each takes a second";
  m.host.cores = 0;
  EXPECT_EQ(simulate(optimizers(4), m, {}).end, kSecond) << "of an unknown number of cores nobody waits for one";
}

// Eight ranks that move to one socket's memory at once.
TEST(HostShare, EightRanksThatOffloadTakeTheirPartOfEachLink) {
  Machine m = nodes_of_four();
  m.tiers[1].sharers = 8;
  m.links[1] = {.name = "host_dram", .bandwidth = 6e10, .sharers = 8};
  m.links.push_back({.name = "uplink", .bandwidth = 2e10, .sharers = 2});
  m.links.push_back({.name = "pcie", .bandwidth = 2e10});
  m.routes = {{.from = 0, .to = 1, .engine = 1, .links = {5, 4, 1}, .bandwidth = 2e10, .efficiency = {}}};
  const auto end = [&](std::uint32_t ranks) {
    TraceBuilder builder;
    builder.trace().name = "offload";
    builder.trace().knowledge.timing = true;
    builder.trace().places = {"hbm", "host"};
    builder.trace().ranks = ranks;
    builder.add_thread("main");
    builder.add_stream("copies", StreamRole::copy);
    Op copy;
    copy.kind = OpKind::copy;
    copy.to = 1;
    copy.bytes = 20'000'000'000;
    copy.duration = kSecond;
    copy.added = true;
    builder.append(copy);
    return simulate(std::move(builder).finish(), m, {}).end;
  };
  EXPECT_EQ(end(1), kSecond);
  EXPECT_EQ(end(2), 2 * kSecond) << "20 GB/s of the uplink for two";
  EXPECT_EQ(end(4), 2 * kSecond) << "two uplinks, 40 of 60 GB/s of DRAM";
  EXPECT_NEAR(to_seconds(end(8)), 8 * 20e9 / 6e10, 1e-9) << "DRAM: 60 GB/s for eight";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
