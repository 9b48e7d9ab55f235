// Is it said of a route what makes it no faster: its slowest links, its own number, or requests of storage?
#include "sim/machine/route_bound.h"

#include <gtest/gtest.h>

#include "models/hw/machine_file.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const Route& route_called(const Machine& machine, const std::string& name) {
  for (const Route& route : machine.routes)
    if (route.name == name) return route;
  throw std::runtime_error("no route " + name);
}

std::string bound_on(const Machine& machine, const std::string& route) {
  return text_of(bound_of(machine, route_called(machine, route)), machine);
}

TEST(RouteBound, NamesEveryLinkThatAllowsNoMore) {
  const Machine even = load_machine("a100-sxm-80gb");
  EXPECT_EQ(bound_on(even, "h2d"), "pcie_uplink_h2d, pcie_h2d");
  EXPECT_EQ(bound_of(even, route_called(even, "h2d")).bandwidth, 26e9);
  EXPECT_EQ(bound_on(load_machine("a100-sxm-80gb", {"link.pcie_h2d.bandwidth=50GB/s"}), "h2d"), "pcie_uplink_h2d");
  EXPECT_EQ(bound_on(load_machine("a100-sxm-80gb", {"link.pcie_h2d.bandwidth=20GB/s"}), "h2d"), "pcie_h2d");
  EXPECT_EQ(bound_on(load_machine("a100-sxm-80gb", {"host.dram.bandwidth=10GB/s"}), "h2d"), "host_dram");
}

TEST(RouteBound, KnowsARouteThatIsSlowItself) {
  EXPECT_EQ(bound_on(load_machine("a100-sxm-80gb"), "h2d_pageable"), "the route itself");
  EXPECT_EQ(bound_on(load_machine("a100-sxm-80gb", {"route.h2d_pageable.bandwidth=40GB/s"}), "h2d_pageable"),
            "pcie_uplink_h2d, pcie_h2d");
}

TEST(RouteBound, KnowsRequestsOfStorage) {
  Machine machine = load_machine("a100-sxm-80gb");
  Route route = route_called(machine, "nvme_to_host");
  route.bandwidth = 1e9;  // as depth x block / latency would have it
  const RouteBound bound = bound_of(machine, route);
  EXPECT_TRUE(bound.requests);
  EXPECT_EQ(text_of(bound, machine), "requests");
}

TEST(RouteBound, SharesWhatSeveralGpusUseAtOnce) {
  const Machine machine = load_machine("a100-sxm-80gb");
  const SharedBound shared = shared_bound_of(machine, route_called(machine, "h2d"));
  EXPECT_EQ(shared.bandwidth, 13e9) << "two GPUs behind one uplink";
  ASSERT_EQ(shared.links.size(), 1u);
  EXPECT_EQ(machine.links[shared.links.front()].name, "pcie_uplink_h2d");
  EXPECT_TRUE(shared_bound_of(machine, route_called(machine, "d2d")).links.empty());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
