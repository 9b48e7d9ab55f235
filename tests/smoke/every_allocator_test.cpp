// Does every allocator run the shipped step, unchanged and under a policy, with figures that belong together?
#include <gtest/gtest.h>

#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "sim/engine/simulation.h"
#include "tests/support/sample.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class EveryAllocator : public ::testing::TestWithParam<std::string> {
 protected:
  Machine machine_ = load_machine("a100-sxm-40gb");
  Trace plain_ = sample_gpt_124m();

  TierResult run(const Trace& trace, const AllocatorSettings& settings = {}) const {
    const SimulationResult result =
        simulate(trace, machine_, {.allocator = GetParam(), .allocator_settings = settings});
    EXPECT_TRUE(result.fits);
    return result.tiers[static_cast<std::size_t>(machine_.tier("hbm"))];
  }
};

void expect_consistent(const TierResult& tier) {
  EXPECT_LE(tier.peak_usage.requested, tier.peak_usage.allocated);
  EXPECT_LE(tier.peak_usage.allocated, tier.peak_usage.reserved);
  EXPECT_EQ(tier.peak_usage.allocated, tier.peak_allocated);
  const Usage& full = tier.pressure.at_peak_reserved;
  EXPECT_EQ(full.reserved, tier.peak_reserved);
  EXPECT_LE(full.requested, full.allocated);
  EXPECT_LE(full.allocated, tier.peak_allocated);
  EXPECT_LE(tier.peak_usage.reserved, tier.peak_reserved);
  EXPECT_EQ(tier.pressure.ooms, 0u);
}

TEST_P(EveryAllocator, RunsTheSample) {
  const TierResult tier = run(plain_);
  expect_consistent(tier);
  EXPECT_GT(tier.peak_allocated, GiB(1));
  const SimulationResult ideal = simulate(plain_, machine_, {.allocator = "ideal"});
  EXPECT_GE(tier.peak_reserved, ideal.tiers[static_cast<std::size_t>(machine_.tier("hbm"))].peak_reserved);
}

TEST_P(EveryAllocator, SeesWhatAPolicyDoes) {
  const PolicySpec checkpoint = parse_policy("checkpoint:mode=full");
  const Trace changed = apply_rewriters(plain_, {checkpoint}, machine_, *make_pricer(machine_));
  const TierResult tier = run(changed);
  expect_consistent(tier);
  EXPECT_LT(tier.peak_reserved, run(plain_).peak_reserved);
}

TEST_P(EveryAllocator, SaysWhatIsMissing) {
  Machine small = machine_;
  const auto hbm = static_cast<std::size_t>(small.tier("hbm"));
  small.tiers[hbm].capacity = small.tiers[hbm].unavailable + GiB(6);
  const SimulationResult result = simulate(plain_, small, {.allocator = GetParam()});
  EXPECT_FALSE(result.fits);
  EXPECT_GT(result.tiers[hbm].missing, GiB(1));
  EXPECT_GT(result.tiers[hbm].pressure.ooms, 0u);
}

INSTANTIATE_TEST_SUITE_P(Smoke, EveryAllocator, ::testing::ValuesIn(run_allocator_names()),
                         [](const auto& allocator) { return allocator.param; });

TEST(AllocatorSettingsOfARun, ReachTheAllocator) {
  const Machine machine = load_machine("a100-sxm-40gb");
  const Trace trace = sample_gpt_124m();
  const auto hbm = static_cast<std::size_t>(machine.tier("hbm"));
  AllocatorSettings settings;
  const TierResult plain = simulate(trace, machine, {}).tiers[hbm];
  settings.expandable_segments = true;
  const TierResult expandable = simulate(trace, machine, {.allocator_settings = settings}).tiers[hbm];
  EXPECT_LT(expandable.peak_reserved, plain.peak_reserved);
  // A fraction is one of the device's whole memory, not of what is usable.
  settings = {};
  settings.per_process_memory_fraction =
      static_cast<double>(plain.peak_reserved + MiB(1)) / static_cast<double>(machine.tiers[hbm].capacity);
  EXPECT_TRUE(simulate(trace, machine, {.allocator_settings = settings}).fits);
  EXPECT_THROW(simulate(trace, machine, {.allocator = "ideal", .allocator_settings = settings}), UsageError);
}

TEST(ArenaOfARun, ReservesItsPlanAndNoPagerGoesWithIt) {
  const Machine machine = load_machine("a100-sxm-40gb");
  const Trace trace = sample_gpt_124m();
  const auto hbm = static_cast<std::size_t>(machine.tier("hbm"));
  const SimulationResult planned = simulate(trace, machine, {.allocator = "arena"});
  const SimulationResult cached = simulate(trace, machine, {});
  EXPECT_EQ(planned.end, cached.end);  // an allocator changes no times
  EXPECT_LE(planned.tiers[hbm].peak_reserved, cached.tiers[hbm].peak_reserved);
  EXPECT_EQ(planned.tiers[hbm].allocator.device_mallocs, 1u);
  const PolicySpec lru = parse_policy("lru");
  const auto pager = lru.info->make_pager(lru.arguments);
  EXPECT_THROW(simulate(trace, machine, {.allocator = "arena", .pager = pager.get()}), UsageError);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
