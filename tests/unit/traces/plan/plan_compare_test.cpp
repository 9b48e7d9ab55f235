// Does a comparison of plans say of every storage which plan does what with it?
#include "traces/plan/plan_compare.h"

#include <gtest/gtest.h>

#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Plans by hand for one program of a thousand ops: storages of so many bytes, in modules.
class PlanByHand {
 public:
  explicit PlanByHand(const std::string& made_by) {
    document.made_by = made_by;
    document.trace = "step";
    document.ops = 1000;
    document.storages = 100;
    document.fingerprint = "0123456789abcdef";
    document.plan.tiers = {{"host", "", true, true, 2, TierClass::host},
                           {"nvme", "host", true, true, 2, TierClass::storage}};
  }
  PlanByHand& copied(StorageId storage, Bytes bytes, const std::string& module, std::uint8_t tier = 0,
                     OpId fetch = 50) {
    StorageDecision& d = add(storage, bytes, module, false);
    d.copies.push_back({{10, true}, tier});
    d.drops.push_back({{20, true}});
    d.fetches.push_back({{fetch, false}, tier});
    return *this;
  }
  PlanByHand& dropped(StorageId storage, Bytes bytes, const std::string& module, bool made_again) {
    add(storage, bytes, module, made_again).drops.push_back({{20, true}});
    return *this;
  }
  PlanByHand& rerun(const std::map<std::string, std::uint64_t>& modules) {
    PlannedRerun again{{60, false}, {}};
    for (const auto& [module, ops] : modules)
      for (std::uint64_t i = 0; i < ops; ++i) again.ops.push_back(static_cast<OpId>(again.ops.size()));
    document.plan.reruns.push_back(std::move(again));
    document.rerun_modules.push_back(modules);
    return *this;
  }

  PlanDocument document;

 private:
  StorageDecision& add(StorageId storage, Bytes bytes, const std::string& module, bool made_again) {
    document.notes.push_back(
        {.label = "", .kind = "activation", .producer = "", .module = module, .made_again = made_again});
    if (bytes > 0) document.notes.back().bytes = bytes;
    StorageDecision decision;
    decision.storage = storage;
    document.plan.storages.push_back(std::move(decision));
    return document.plan.storages.back();
  }
};

Bytes of_fate(const std::array<Bytes, kStorageFates>& bytes, StorageFate fate) {
  return bytes[static_cast<std::size_t>(fate)];
}

TEST(PlanCompare, APlanIsLikeAnotherInEverythingOrNot) {
  const PlanByHand a = PlanByHand("a").copied(1, 100, "layers.0").rerun({{"layers.0", 2}});
  const auto comparison = [&](auto change) {
    PlanByHand b = a;
    change(b.document.plan);
    return compare(a.document, b.document, "a.plan", "b.plan");
  };
  const PlanComparison same = comparison([](MemoryPlan&) {});
  EXPECT_EQ(same.alike, 1u);
  EXPECT_TRUE(same.same_reruns);
  // Tiers are told by what they are, not by their numbers.
  const PlanComparison renumbered = comparison([](MemoryPlan& plan) {
    std::swap(plan.tiers[0], plan.tiers[1]);
    plan.storages[0].copies[0].tier = plan.storages[0].fetches[0].tier = 1;
  });
  EXPECT_EQ(renumbered.alike, 1u);
  const PlanComparison latest = comparison([](MemoryPlan& plan) { plan.storages[0].fetches[0].latest_safe = true; });
  EXPECT_EQ(latest.alike, 0u);
  EXPECT_EQ(latest.rescheduled, 1u);
  EXPECT_EQ(comparison([](MemoryPlan& plan) { plan.storages[0].fetches[0].tier = 1; }).rescheduled, 1u);
  EXPECT_EQ(comparison([](MemoryPlan& plan) { plan.tiers[0].pinned = false; }).rescheduled, 1u);
  EXPECT_FALSE(comparison([](MemoryPlan& plan) { plan.reruns[0].at.op = 61; }).same_reruns);
  EXPECT_FALSE(comparison([](MemoryPlan& plan) { plan.keeps.push_back({9, {61, false}}); }).same_reruns);
}

TEST(PlanCompare, WhatIsFetchedFromAHeldCopyIsCopied) {
  PlanByHand a = PlanByHand("a").copied(1, 100, "layers.0", 1);
  StorageDecision& d = a.document.plan.storages[0];
  d.copies.clear();
  d.held = 1;
  const PlanComparison c = compare(a.document, PlanByHand("b").document, "a.plan", "b.plan");
  EXPECT_EQ(of_fate(c.total().base_bytes, StorageFate::copied), 100);
}

TEST(PlanCompare, CountsWhatOnlyOneDecidesAndWhatFaresDifferently) {
  const PlanByHand a = PlanByHand("a").copied(1, 100, "layers.0").copied(2, 200, "layers.0").copied(3, 300, "layers.1");
  const PlanByHand b = PlanByHand("b")
                           .copied(1, 100, "layers.0")
                           .dropped(2, 200, "layers.0", true)
                           .dropped(4, 40, "layers.1", false)
                           .rerun({{"layers.0", 2}, {"layers.1", 3}});
  const PlanComparison c = compare(a.document, b.document, "a.plan", "b.plan");
  EXPECT_EQ(c.alike, 1u);
  EXPECT_EQ(c.rescheduled, 0u);
  EXPECT_EQ(c.different, 3u);
  ASSERT_EQ(c.modules.size(), 2u);
  const PlanModuleDifference& most = c.modules[0];
  EXPECT_EQ(most.module, "layers.1") << "340 bytes fare differently there, 200 in layers.0";
  EXPECT_EQ(most.different_bytes, 340);
  EXPECT_EQ(most.only_in_base, 1u);
  EXPECT_EQ(most.only_in_other, 1u);
  EXPECT_EQ(of_fate(most.base_bytes, StorageFate::copied), 300);
  EXPECT_EQ(of_fate(most.base_bytes, StorageFate::kept), 40) << "what only the other plan drops";
  EXPECT_EQ(of_fate(most.other_bytes, StorageFate::dropped), 40);
  EXPECT_EQ(of_fate(most.other_bytes, StorageFate::kept), 300);
  EXPECT_EQ(of_fate(c.modules[1].base_bytes, StorageFate::copied), 300);
  EXPECT_EQ(of_fate(c.modules[1].other_bytes, StorageFate::copied), 100);
  EXPECT_EQ(of_fate(c.modules[1].other_bytes, StorageFate::rerun), 200);
  EXPECT_EQ(c.total().different_bytes, 540);
  EXPECT_EQ(c.base_ops(), 0u);
  EXPECT_EQ(c.other_ops(), 5u);
  ASSERT_EQ(c.reruns.size(), 2u);
  EXPECT_EQ(c.reruns[1].module, "layers.1");
  EXPECT_EQ(c.reruns[1].other_ops, 3u);
}

TEST(PlanCompare, AnotherTierIsADifferenceAndAnotherTimeIsNot) {
  const PlanByHand a = PlanByHand("a").copied(1, 100, "m").copied(2, 100, "m");
  const PlanByHand b = PlanByHand("b").copied(1, 100, "m", 1).copied(2, 100, "m", 0, 40);
  const PlanComparison c = compare(a.document, b.document, "a", "b");
  EXPECT_EQ(c.different, 1u);
  EXPECT_EQ(c.rescheduled, 1u);
  EXPECT_EQ(c.alike, 0u);
  EXPECT_EQ(c.modules[0].different_bytes, 100);
}

TEST(PlanCompare, ASizeThatOneFileSaysIsEnough) {
  const PlanByHand a = PlanByHand("a").copied(1, 0, "").copied(2, 0, "");
  const PlanByHand b = PlanByHand("b").dropped(1, 100, "m", true);
  const PlanComparison c = compare(a.document, b.document, "a", "b");
  EXPECT_EQ(c.total().different_bytes, 100);
  EXPECT_EQ(c.unknown_bytes, 1u) << "of storage 2 nobody says it";
}

TEST(PlanCompare, PlansForTwoProgramsAreRefused) {
  const PlanByHand a("a");
  PlanByHand b("b");
  b.document.fingerprint = "fedcba9876543210";
  b.document.trace = "another step";
  try {
    compare(a.document, b.document, "a.plan", "b.plan");
    FAIL() << "compared";
  } catch (const UsageError& error) {
    const std::string sentence = error.what();
    EXPECT_EQ(
        sentence.find("a.plan is a plan for step (1000 ops, fingerprint 0123456789abcdef), b.plan for another step"),
        0u)
        << sentence;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
