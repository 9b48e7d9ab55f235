// Which links do the members of a group use, by where they sit?
#include "sim/machine/group_place.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr auto kReduce = CollectiveKind::all_reduce;

// Nodes of eight GPUs on a switch, with as many adapters as said.
Machine nodes_of_eight(std::uint32_t adapters) {
  Machine m;
  m.links = {{.name = "hbm", .bandwidth = 3e12},
             {.name = "host_dram", .bandwidth = 2e11, .sharers = 8},
             {.name = "nvlink", .bandwidth = 4e11},
             {.name = "network", .bandwidth = 5e10, .sharers = 8 / adapters}};
  m.hbm_link = 0;
  m.dram_link = 1;
  m.fabrics.resize(2);
  m.fabrics[0].name = "nvlink";
  m.fabrics[0].links = {2, 0};
  m.fabrics[0].max_ranks = 8;
  m.fabrics[1].name = "network";
  m.fabrics[1].links = {3, 0};
  return m;
}

ProcessGroup group(std::vector<std::uint32_t> members) {
  return {"", static_cast<std::uint32_t>(members.size()), std::move(members)};
}

std::map<std::string, double> shares(const Machine& m, const ProcessGroup& g, std::uint32_t number,
                                     CollectiveKind kind) {
  std::map<std::string, double> by_name;
  const GroupRoute route = route_of(m, g, number, kind);
  for (std::size_t i = 0; i < route.links.size(); ++i) by_name[m.links[route.links[i]].name] = route.shares[i];
  return by_name;
}

using Shares = std::map<std::string, double>;

TEST(GroupPlace, ThePlacesOfTheMembersDecideTheFabric) {
  const Machine m = nodes_of_eight(8);
  EXPECT_EQ(fabric_of(m, place_of(m, group({0, 1}))), 0u);
  EXPECT_EQ(fabric_of(m, place_of(m, group({0, 8}))), 1u) << "two as well, in two nodes";
  EXPECT_EQ(fabric_of(m, place_of(m, group({7, 8}))), 1u);
  EXPECT_EQ(fabric_of(m, place_of(m, group({8, 12, 15}))), 0u);
  EXPECT_EQ(fabric_of(m, contiguous_place(m, 9)), 1u);
  Machine alone = m;
  alone.fabrics.pop_back();
  EXPECT_EQ(fabric_of(alone, place_of(alone, group({0, 8}))), kNoFabric);
}

// shared/spec/parallelism.md 8.4, G12b: bytes through one adapter of an all-reduce of 1e9 B.
TEST(GroupPlace, BytesPerAdapterAreThoseOfThePlacement) {
  const auto bytes = [](const Machine& m, const ProcessGroup& g, double ranks) {
    const double sent = 2 * (ranks - 1) / ranks * 1e9;
    const int adapter = m.link("network");
    const double together = m.links[static_cast<std::size_t>(adapter)].sharers;  // ranks behind it, in equal use
    return shares(m, g, 0, kReduce).at("network") * sent * together;
  };
  std::vector<std::uint32_t> sixteen;
  for (std::uint32_t r = 0; r < 16; ++r) sixteen.push_back(r);
  EXPECT_DOUBLE_EQ(bytes(nodes_of_eight(8), group(sixteen), 16), 234375000);
  EXPECT_DOUBLE_EQ(bytes(nodes_of_eight(8), group({0, 8}), 2), 1e9) << "4.27 times as many";
  EXPECT_DOUBLE_EQ(bytes(nodes_of_eight(4), group({0, 8}), 2), 2e9) << "two such groups to an adapter";
  EXPECT_DOUBLE_EQ(bytes(nodes_of_eight(4), group(sixteen), 16), 2 * 234375000.0);
}

TEST(GroupPlace, WhatStaysInANodeGoesOverItsOwnLinks) {
  const Machine m = nodes_of_eight(8);
  EXPECT_EQ(shares(m, group({0, 1, 2, 3}), 0, kReduce), (Shares{{"nvlink", 1}, {"hbm", 1}}));
  EXPECT_EQ(shares(m, group({0, 1, 2, 3, 8, 9, 10, 11}), 0, kReduce),
            (Shares{{"network", 0.25}, {"nvlink", 0.75}, {"hbm", 1}}));
  EXPECT_EQ(shares(m, group({0, 8, 16}), 8, kReduce), (Shares{{"network", 1}, {"hbm", 1}}));
  // Three of the node's ranks and one elsewhere: that one sends all it sends over the network.
  EXPECT_EQ(shares(m, group({0, 1, 2, 8}), 8, kReduce), (Shares{{"network", 1}, {"hbm", 1}}));
}

TEST(GroupPlace, AnAllToAllLeavesByEachRanksOwnAdapter) {
  const Machine m = nodes_of_eight(8);
  const Shares found = shares(m, group({0, 1, 8, 9}), 0, CollectiveKind::all_to_all);
  EXPECT_DOUBLE_EQ(found.at("network"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(found.at("nvlink"), 1.0 / 3);
  EXPECT_EQ(shares(m, group({0, 8}), 0, CollectiveKind::send_receive), (Shares{{"network", 1}, {"hbm", 1}}));
}

TEST(GroupPlace, AnUplinkCarriesWhatLeavesThoseBehindIt) {
  Machine m = nodes_of_eight(8);
  m.links.push_back({.name = "spine", .bandwidth = 4e11, .sharers = 32});
  m.fabrics[1].max_ranks = 32;
  Fabric spine;
  spine.name = "spine";
  spine.links = {4, 3, 0};
  m.fabrics.push_back(spine);
  std::vector<std::uint32_t> all;
  for (std::uint32_t r = 0; r < 64; ++r) all.push_back(r);
  const Shares found = shares(m, group(all), 0, kReduce);
  EXPECT_DOUBLE_EQ(found.at("spine"), 1.0 / 32);
  EXPECT_DOUBLE_EQ(found.at("network"), 1.0 / 8);
  EXPECT_DOUBLE_EQ(found.at("nvlink"), 7.0 / 8);
}

TEST(GroupPlace, ARingPassesAnUplinkOfTheNodeOnce) {
  Machine m = nodes_of_eight(1);
  m.links.push_back({.name = "uplink", .bandwidth = 26e9, .sharers = 4});
  m.fabrics = {m.fabrics[0]};
  m.fabrics[0].links = {4, 2};
  std::vector<std::uint32_t> node{0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(shares(m, group(node), 0, kReduce), (Shares{{"uplink", 0.25}, {"nvlink", 1}}));
}

TEST(GroupPlace, CountsTheAdaptersThatMembersHave) {
  const Machine m = nodes_of_eight(4);
  EXPECT_DOUBLE_EQ(place_of(m, group({0, 8})).fabrics[1].adapters, 0.25);
  EXPECT_DOUBLE_EQ(place_of(m, group({0, 1, 8, 9})).fabrics[1].adapters, 0.25) << "both behind one";
  EXPECT_DOUBLE_EQ(place_of(m, group({0, 2, 8, 10})).fabrics[1].adapters, 0.5);
  EXPECT_EQ(place_of(m, group({0, 1, 8})).fabrics[1].adapter_members, 2u);
  EXPECT_DOUBLE_EQ(contiguous_place(m, 16).fabrics[1].adapters, 1);
  EXPECT_DOUBLE_EQ(contiguous_place(m, 12).fabrics[1].adapters, 0.5) << "the second node has four of its GPUs in it";
}

// Of a divided job every GPU is in such a group: what stands behind one adapter shares it.
TEST(GroupPlace, GroupsOfOneJobShareAdapters) {
  const auto named = [](const char* name, std::vector<std::uint32_t> members) {
    ProcessGroup g = group(std::move(members));
    g.name = name;
    return g;
  };
  const auto adapters = [](const Machine& m, const ProcessGroup& g) { return place_of(m, g).fabrics[1].adapters; };
  const Machine four = nodes_of_eight(4), eight = nodes_of_eight(8);
  EXPECT_EQ(adapters(four, named("data parallel", {0, 8, 16})), 1 / 8.0);
  EXPECT_EQ(adapters(four, named("data parallel", {0, 4, 8, 12})), 2 / 8.0);
  EXPECT_EQ(adapters(eight, named("data parallel", {0, 8, 16})), 1 / 8.0) << "each has its own";
  EXPECT_EQ(adapters(four, named("data parallel", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})), 1);
  EXPECT_EQ(adapters(four, named("another", {0, 8, 16})), 1 / 4.0) << "of whom nothing is known";
}

TEST(GroupPlace, ManyFromZeroOnAreNoDifferentFromThemselves) {
  const Machine m = nodes_of_eight(4);
  for (std::uint32_t n = 1; n < 70; ++n) {
    std::vector<std::uint32_t> members;
    for (std::uint32_t r = 0; r < n; ++r) members.push_back(r);
    const GroupPlace known = place_of(m, members), counted = contiguous_place(m, n);
    for (std::size_t f = 0; f < 2; ++f) {
      EXPECT_EQ(known.fabrics[f].domains, counted.fabrics[f].domains) << n;
      EXPECT_EQ(known.fabrics[f].members, counted.fabrics[f].members) << n;
      EXPECT_EQ(known.fabrics[f].fewest, counted.fabrics[f].fewest) << n;
      EXPECT_DOUBLE_EQ(known.fabrics[f].adapters, counted.fabrics[f].adapters) << n;
      EXPECT_EQ(known.fabrics[f].adapter_members, counted.fabrics[f].adapter_members) << n;
    }
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
