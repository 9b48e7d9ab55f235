// Does a run of several ranks say how long a step would take without the others on its host?
#include "study/alone_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sim/machine/shared_tier.h"
#include "study/study.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(AloneStep, WithoutSharingTheHostIsEachRanksOwn) {
  Machine shared = test_machine();
  shared.host.cores = 8;
  shared.fabrics.back().links = {static_cast<std::uint16_t>(shared.links.size())};
  shared.links.push_back({.name = "adapter", .bandwidth = 1e10});
  for (Link& link : shared.links) link.sharers = 8;
  const Machine alone = without_sharing(shared);
  for (const char* own : {"pcie_h2d", "pcie_d2h", "host_dram", "nvme_read"})
    EXPECT_EQ(alone.links[static_cast<std::size_t>(alone.link(own))].sharers, 1u) << own;
  EXPECT_EQ(alone.links[static_cast<std::size_t>(alone.link("adapter"))].sharers, 8u);
  EXPECT_EQ(sharers_of_tier(alone, static_cast<std::size_t>(alone.tier("host"))), 8u) << "memory is divided as before";
  EXPECT_EQ(alone.host.cores, 0u);
}

TEST(AloneStep, OneKindOfResourceCanStayShared) {
  Machine shared = test_machine();
  shared.host.cores = 8;
  for (Link& link : shared.links) link.sharers = 8;
  const auto sharers = [](const Machine& m, const char* link) {
    return m.links[static_cast<std::size_t>(m.link(link))].sharers;
  };
  struct Case {
    SharedResource kept;
    const char* link;  // what stays shared; null: no link
  };
  const char* const all[] = {"pcie_h2d", "host_dram", "nvme_read"};
  for (const auto& [kept, stays] :
       {Case{SharedResource::links, "pcie_h2d"}, Case{SharedResource::memory_channels, "host_dram"},
        Case{SharedResource::storage, "nvme_read"}, Case{SharedResource::cores, nullptr}}) {
    const Machine m = without_sharing(shared, kept);
    for (const std::string link : all)
      EXPECT_EQ(sharers(m, link.c_str()), stays && link == stays ? 8u : 1u)
          << link << " of " << (stays ? stays : "cores");
    EXPECT_EQ(m.host.cores, kept == SharedResource::cores ? 8u : 0u);
  }
}

Scenario offloading(std::uint32_t ranks) {
  Scenario scenario;
  scenario.step = {"gpt2-124m:batch=4"};
  scenario.machine = "a100-sxm-80gb";
  scenario.policies = {"zero:stage=2,ranks=" + std::to_string(ranks), "offload:what=optimizer"};
  return scenario;
}

TEST(AloneStep, EightCpuOptimizersOfOneHostCostMoreThanOne) {
  Study study;
  const memwall::Run one = study.run(offloading(2), {.record = false, .try_alone = true}).run;
  const memwall::Run eight = study.run(offloading(8), {.record = false, .try_alone = true}).run;
  ASSERT_GT(eight.alone_step, Duration{});
  EXPECT_GT(mean_step(eight), eight.alone_step);
  EXPECT_GT(mean_step(eight) - eight.alone_step, mean_step(one) - one.alone_step);
  EXPECT_EQ(study.run(offloading(8), {.record = false}).run.alone_step, Duration{}) << "nobody asked";
}

// On the DGX A100 eight optimizers of a host share its DRAM: that alone makes most of what all together make.
TEST(AloneStep, SaysWhichSharedThingMakesItLonger) {
  Study study;
  const memwall::Run run = study.run(offloading(8), {.record = false, .try_alone = true}).run;
  const ContendedSteps& steps = run.contended_steps;
  const Duration step = mean_step(run);
  for (const Duration one : {steps.links, steps.memory_channels, steps.cores, steps.storage}) {
    EXPECT_GE(one, run.alone_step);
    EXPECT_LE(one, step);
  }
  EXPECT_EQ(steps.storage, run.alone_step) << "nothing goes to drives";
  EXPECT_GT(std::max({steps.links, steps.memory_channels, steps.cores}) - run.alone_step, (step - run.alone_step) / 2);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
