// Plans that were tried once are not simulated again, and no two plans are taken for the same.
#include "policies/planners/tried_plans.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace memwall {
namespace MEMWALL_TEST_FILE {

MemoryPlan some_plan() {
  MemoryPlan plan;
  plan.tiers = {{"host", "", true, true, 2, TierClass::host}};
  StorageDecision decision;
  decision.storage = 7;
  decision.copies = {{{3, true, 0}, 0}};
  decision.drops = {{{5, false, 1}}};
  decision.fetches = {{{200, false, 0}, 0, false}};
  decision.updates = {{9, 4}};
  plan.storages = {decision};
  plan.reruns = {{{210, false, 0}, {1, 2}, {0}}};
  plan.keeps = {{11, {300, true, 0}}};
  return plan;
}

TEST(TriedPlans, EachMemberOfAPlanIsInItsKey) {
  using Change = std::function<void(MemoryPlan&)>;
  const std::vector<Change> changes = {
      [](MemoryPlan&) {},
      [](MemoryPlan& p) { p.tiers[0].tier = "nvme"; },
      [](MemoryPlan& p) { p.tiers[0].through = "host"; },
      [](MemoryPlan& p) { p.tiers[0].pinned = false; },
      [](MemoryPlan& p) { p.tiers[0].side_streams = false; },
      [](MemoryPlan& p) { p.tiers[0].staging = 3; },
      [](MemoryPlan& p) { p.tiers[0].tier_class = TierClass::storage; },
      [](MemoryPlan& p) { p.tiers.push_back(p.tiers[0]); },
      [](MemoryPlan& p) { p.storages[0].storage = 8; },
      [](MemoryPlan& p) { p.storages[0].home = 0; },
      [](MemoryPlan& p) { p.storages[0].held = 0; },
      [](MemoryPlan& p) { p.storages[0].taken_away = true; },
      [](MemoryPlan& p) { p.storages[0].copies[0].at.op = 4; },
      [](MemoryPlan& p) { p.storages[0].copies[0].at.after = false; },
      [](MemoryPlan& p) { p.storages[0].copies[0].at.order = 1; },
      [](MemoryPlan& p) { p.storages[0].copies[0].tier = 1; },
      [](MemoryPlan& p) { p.storages[0].copies.clear(); },
      [](MemoryPlan& p) { p.storages[0].drops[0].at.op = 6; },
      [](MemoryPlan& p) {
        p.storages[0].drops.push_back({{6, false, 0}});
      },
      [](MemoryPlan& p) { p.storages[0].fetches[0].at.op = 201; },
      [](MemoryPlan& p) { p.storages[0].fetches[0].tier = PlannedFetch::kNoTier; },
      [](MemoryPlan& p) { p.storages[0].fetches[0].latest_safe = true; },
      [](MemoryPlan& p) { p.storages[0].updates[0].op = 10; },
      [](MemoryPlan& p) { p.storages[0].updates[0].host = 5; },
      [](MemoryPlan& p) { p.storages.clear(); },
      [](MemoryPlan& p) { p.reruns[0].at.op = 211; },
      [](MemoryPlan& p) { p.reruns[0].ops = {1}; },
      [](MemoryPlan& p) { p.reruns[0].called.clear(); },
      [](MemoryPlan& p) {
        p.reruns[0].ops = {1, 2, 0}, p.reruns[0].called.clear();
      },
      [](MemoryPlan& p) { p.keeps[0].storage = 12; },
      [](MemoryPlan& p) { p.keeps[0].until.op = 301; },
      [](MemoryPlan& p) { p.keeps.clear(); },
  };
  std::set<std::string> keys;
  for (const Change& change : changes) {
    MemoryPlan plan = some_plan();
    change(plan);
    keys.insert(key_of(plan));
    EXPECT_EQ(key_of(plan), key_of(MemoryPlan(plan)));
  }
  EXPECT_EQ(keys.size(), changes.size());
}

TEST(TriedPlans, ThoseOfOneKeyAreSimulatedOnce) {
  const TriedPlans tried;
  int simulated = 0;
  const auto simulate = [&](const MemoryPlan& plan) {
    RepairedPlan made;
    made.over = 100 + static_cast<Bytes>(plan.storages.size());
    ++simulated;
    return made;
  };
  MemoryPlan other = some_plan();
  other.storages.clear();
  EXPECT_EQ(tried.get(some_plan(), simulate).over, 101);
  EXPECT_FALSE(tried.has(other));
  EXPECT_EQ(tried.get(other, simulate).over, 100);
  EXPECT_TRUE(tried.has(other));
  const RepairedPlan again = tried.get(some_plan(), simulate);
  EXPECT_EQ(again.over, 101);
  EXPECT_EQ(again.plan, some_plan()) << "with its own plan";
  EXPECT_EQ(simulated, 2);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
