// Is a first step longer than later ones by what it page-locks?
#include "study/first_step.h"

#include <gtest/gtest.h>

#include "study/study.h"
#include "traces/run/analysis/host_use.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Scenario offloading(const std::string& settings = "") {
  Scenario scenario;
  scenario.step = {"gpt2-124m:batch=4"};
  scenario.machine = "a100-sxm-80gb";
  scenario.policies = {"offload:what=activations"};
  scenario.allocator_settings = settings;
  return scenario;
}

TEST(FirstStep, FillsThePoolOfPageLockedMemory) {
  Study study;
  const memwall::Run run = study.run(offloading(), {.try_first_step = true}).run;
  const HostUse host = host_use(run).front();
  ASSERT_GT(host.in_first_step.calls, 0u);
  const Duration locking = from_seconds(static_cast<double>(host.in_first_step.bytes) / run.machine.host.pinning) +
                           static_cast<std::int64_t>(host.in_first_step.calls) * run.machine.host.pinned_allocation;
  const Duration step = mean_step(run);
  EXPECT_GT(run.first_step, step);
  // Some of it may hide where the step waits anyhow; besides, cudaMalloc fills the GPU's cache.
  EXPECT_GT(run.first_step - step, locking / 2);
  EXPECT_LT(run.first_step - step, locking + step);
  EXPECT_EQ(study.run(offloading(), {.record = false}).run.first_step, Duration{}) << "nobody asked";
}

TEST(FirstStep, IsOneOfManyWithoutAPool) {
  Study study;
  const memwall::Run pooled = study.run(offloading(), {.record = false}).run;
  const memwall::Run unpooled = study.run(offloading("pinned_pool:False"), {.try_first_step = true}).run;
  EXPECT_EQ(unpooled.first_step, Duration{});
  const HostUse host = host_use(unpooled).front();
  const Duration locking = from_seconds(static_cast<double>(host.in_first_step.bytes) / unpooled.machine.host.pinning);
  EXPECT_GT(mean_step(unpooled), mean_step(pooled) + locking / 2) << "every step pays";
}

TEST(FirstStep, IsNotToldWhereNothingIsPageLocked) {
  Study study;
  Scenario scenario = offloading();
  scenario.policies = {};
  EXPECT_EQ(study.run(scenario, {.record = false, .try_first_step = true}).run.first_step, Duration{});
  scenario.policies = {"offload:what=activations,pinned=0"};
  EXPECT_EQ(study.run(scenario, {.record = false, .try_first_step = true}).run.first_step, Duration{});
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
