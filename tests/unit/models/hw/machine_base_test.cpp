// Is a machine file with a base that machine, but for what it says?
#include <gtest/gtest.h>

#include "models/hw/machine_file.h"
#include "sim/error.h"
#include "sim/machine/group_place.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr const char* kHead = "base: \"a100-sxm-80gb\"\nname: \"mine\"\ndescription: \"one of mine\"\n";

std::string error_of(const std::string& text) {
  try {
    parse_machine(text, "mine.textproto");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(MachineBase, WhatAFileDoesNotSayIsTheBases) {
  Machine machine = parse_machine(kHead, "mine.textproto");
  const Machine base = load_machine("a100-sxm-80gb");
  EXPECT_EQ(machine.name, "mine");
  EXPECT_EQ(machine.description, "one of mine");
  machine.name = base.name;
  machine.description = base.description;
  EXPECT_EQ(machine, base);
}

TEST(MachineBase, NumbersReplaceAndNamedBlocksMerge) {
  const Machine base = load_machine("a100-sxm-80gb");
  const Machine machine = parse_machine(std::string(kHead) + R"(
host { dram { capacity { value: "3 TB" source: "mine" } } }
link { name: "network" sharers { value: "4" source: "mine" } }
link { name: "extra" bandwidth { value: "7 GB/s" source: "mine" } }
)",
                                        "mine.textproto");
  EXPECT_EQ(machine.tiers[1].capacity, 3'000'000'000'000);
  EXPECT_EQ(machine.links.size(), base.links.size() + 1);
  const auto link = [](const Machine& m, const char* name) { return m.links[static_cast<std::size_t>(m.link(name))]; };
  EXPECT_EQ(link(machine, "network").sharers, 4u);
  EXPECT_EQ(link(machine, "network").bandwidth, link(base, "network").bandwidth);
  EXPECT_EQ(link(machine, "extra").bandwidth, 7e9);
}

TEST(MachineBase, MistakesAreFoundWhereTheyStand) {
  EXPECT_EQ(error_of("base: \"a100-sxm-80gb\"\nname: \"mine\"\n"),
            "mine.textproto:1:1: description is missing; expected the key \"description\"");
  EXPECT_EQ(error_of(std::string(kHead) + "host { cores { value: \"many\" source: \"mine\" } }").substr(0, 22),
            "mine.textproto:4:16: h");
  EXPECT_NE(error_of("name: \"mine\"\ndescription: \"d\"\nbase: \"a100-sxm-80\"").find("mine.textproto:3:1: "),
            std::string::npos);
  EXPECT_NE(error_of("name: \"mine\"\ndescription: \"d\"\nbase: \"../a.textproto\"").find("is a path"),
            std::string::npos);
  EXPECT_NE(error_of("name: \"mine\"\ndescription: \"d\"\nbase: \"dgx-1\"").find("has a base of its own"),
            std::string::npos);
  EXPECT_NE(error_of(std::string(kHead) + "link { name: \"new\" }").find("link.new.bandwidth is missing"),
            std::string::npos);
}

TEST(MachineBase, NodesDivideTheirHostByNumaNode) {
  const Machine node = load_machine("dgx-a100-80gb"), base = load_machine("a100-sxm-80gb");
  EXPECT_EQ(node.links[node.dram_link].bandwidth, base.links[base.dram_link].bandwidth / 2);
  EXPECT_EQ(node.links[node.dram_link].sharers, 4u);
  EXPECT_EQ(node.tiers[1].sharers, 8u) << "memory is the whole host's";
  EXPECT_EQ(adapter_count(load_machine("aws-p4d"), load_machine("aws-p4d").fabrics.size() - 1), 4u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
