// Does the fast caching allocator agree with the obvious one at every call, whatever the settings and the sequence?
//
// Two million random calls in all. A failing sequence is shortened and printed with its seed and settings.
#include <gtest/gtest.h>

#include "tests/support/reference_allocator_comparison.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr std::uint64_t kScenariosWithAnySetting = 3000, kScenariosOfOneSort = 400;

// The seeds are fixed, so that every run draws the same; `first` keeps the tests' seeds apart.
void expect_agreement(std::uint64_t first, std::uint64_t scenarios, const ScenarioProfile& profile) {
  for (std::uint64_t seed = first; seed < first + scenarios; ++seed) {
    const AllocatorScenario scenario = random_scenario(seed, profile);
    ASSERT_EQ(scenario.operations.size(), static_cast<std::size_t>(profile.operations));
    if (!compare_with_reference(scenario)) continue;
    const AllocatorScenario shortest = shortest_difference(scenario);
    const auto difference = compare_with_reference(shortest);
    FAIL() << describe(shortest) << "after operation " << difference->operation << ": " << difference->what;
  }
}

ScenarioProfile plain() {
  ScenarioProfile p;
  p.expandable = p.max_split = p.divisions = p.large_segment = p.fraction = p.restored = p.reserve = p.vast = 0;
  return p;
}

TEST(PytorchAllocatorProperty, AgreesUnderAnySettings) {
  expect_agreement(1, kScenariosWithAnySetting, ScenarioProfile{});
}

TEST(PytorchAllocatorProperty, AgreesUnderTheDefaultSettings) {
  expect_agreement(100'001, kScenariosOfOneSort, plain());
}

TEST(PytorchAllocatorProperty, AgreesWhenMemoryRunsOut) {
  ScenarioProfile p;
  p.tight = 100;
  p.refusing = 50;
  expect_agreement(200'001, kScenariosOfOneSort, p);
}

TEST(PytorchAllocatorProperty, AgreesOnExpandableSegments) {
  ScenarioProfile p;
  p.expandable = 100;
  p.tight = 80;
  expect_agreement(300'001, kScenariosOfOneSort, p);
}

TEST(PytorchAllocatorProperty, AgreesOnOversizeBlocks) {
  ScenarioProfile p;
  p.max_split = 100;
  p.expandable = 15;
  expect_agreement(400'001, kScenariosOfOneSort, p);
}

TEST(PytorchAllocatorProperty, AgreesOnGarbageCollection) {
  ScenarioProfile p;
  p.fraction = p.garbage_collection = 100;
  p.expandable = 15;
  expect_agreement(500'001, kScenariosOfOneSort, p);
}

TEST(PytorchAllocatorProperty, AgreesOnBlocksThatOtherStreamsUse) {
  ScenarioProfile p = plain();
  p.cross_stream = p.halves = 100;
  p.captures = 50;
  expect_agreement(600'001, kScenariosOfOneSort, p);
}

TEST(PytorchAllocatorProperty, AgreesOnPrivatePools) {
  ScenarioProfile p;
  p.private_pools = p.captures = p.cross_stream = 100;
  expect_agreement(700'001, kScenariosOfOneSort, p);
}

TEST(PytorchAllocatorProperty, AgreesFromAnyStartState) {
  ScenarioProfile p;
  p.restored = 100;
  expect_agreement(800'001, kScenariosOfOneSort, p);
}

TEST(PytorchAllocatorProperty, AgreesOverLongSequences) {
  ScenarioProfile p;
  p.operations = 5000;
  expect_agreement(900'001, 12, p);
}

TEST(PytorchAllocatorProperty, AgreesOnSizesBeyondAnyDevice) {
  ScenarioProfile p;
  p.vast = 100;
  expect_agreement(1'000'001, kScenariosOfOneSort / 3, p);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
