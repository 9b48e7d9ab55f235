// Are fetches issued so late that one kernel later would make their uses wait, and so early that none waits? In closed
// form: kernels of 10 ms, copies of 100 ms.
#include "policies/profile/latest_safe.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "policies/plan/plan_check.h"
#include "policies/profile/plan_estimate.h"
#include "sim/error.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/step_program.h"
#include "tests/support/test_machine.h"
#include "traces/plan/plan_file.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kGigabyte = 1'000'000'000;
constexpr int kBetween = 50;  // kernels

// a and b of 1 GB each are made, much later read one right after the other.
class LatestSafe : public ::testing::Test {
 protected:
  LatestSafe() {
    StepProgram p;
    Op ten;
    ten.duration = microseconds(10'000);
    a_ = p.make(kGigabyte, "a"), made_a_ = p.op("a", {}, {a_}, ten);
    b_ = p.make(kGigabyte, "b"), made_b_ = p.op("b", {}, {b_}, ten);
    p.backward();
    for (int i = 0; i < kBetween; ++i) between_.push_back(p.op("rest", {}, {}, ten));
    scratch_ = p.make(100, "scratch");
    asks_ = static_cast<OpId>(p.builder().trace().ops.size() - 1);
    reads_a_ = p.op("reads_a", {a_}, {}, ten);
    reads_b_ = p.op("reads_b", {b_}, {}, ten);
    p.drop(scratch_);
    p.drop(a_);
    p.drop(b_);
    p.optimizer();
    trace_ = std::move(p).finish();
    trace_.constants.event_latency = {};
    plan_.tiers.resize(1);
    plan_.tiers[0].tier = "host";
    // Dropped once both copies have left, 210 ms on.
    plan_.storages = {moved(a_, made_a_, between_[20], reads_a_), moved(b_, made_b_, between_[20], reads_b_)};
  }

  static StorageDecision moved(StorageId storage, OpId made, OpId dropped, OpId read) {
    StorageDecision d;
    d.storage = storage;
    d.copies.push_back({{made, true, 0}, 0});
    d.drops.push_back({{dropped, true, 1}});
    d.fetches.push_back({{read, false, 0}, 0, true});
    return d;
  }

  Time end_of(const MemoryPlan& plan) const {
    const auto pricer = test_pricer(machine_);
    return simulate_plan(StepProfile(trace_, machine_), plan, *pricer).result.end;
  }

  // How many kernels before b's read.
  std::size_t ahead(const PlanPoint& at) const {
    return static_cast<std::size_t>(between_.end() - std::find(between_.begin(), between_.end(), at.op)) + 1;
  }

  const Machine machine_ = test_machine();
  Trace trace_;
  StorageId a_ = 0, b_ = 0, scratch_ = 0;
  OpId made_a_ = 0, made_b_ = 0, asks_ = 0, reads_a_ = 0, reads_b_ = 0;  // asks_: the alloc before reads_a_
  std::vector<OpId> between_;
  MemoryPlan plan_;
};

TEST_F(LatestSafe, CopiesQueueBackwardsFromTheirUses) {
  const StepProfile profile(trace_, machine_);
  ASSERT_TRUE(has_latest_safe(plan_));
  const MemoryPlan issued = issued_latest_safe(plan_, profile);
  EXPECT_FALSE(has_latest_safe(issued));
  EXPECT_EQ(check_plan(issued, trace_, profile.flow()), std::vector<std::string>{});
  // b in the last 100 ms before its read, a in the 100 ms before these; slots of the ledger round up by a kernel.
  EXPECT_NEAR(static_cast<double>(ahead(issued.storages[1].fetches[0].at)), 10.5, 0.6);
  EXPECT_NEAR(static_cast<double>(ahead(issued.storages[0].fetches[0].at)), 20.5, 0.6);
  const Time without = end_of({});
  EXPECT_EQ(end_of(issued), without) << "nothing waits";
  EXPECT_GT(end_of(plan_), without + microseconds(150'000)) << "issued at their uses, both wait";
  for (const std::size_t moved : {std::size_t{0}, std::size_t{1}}) {
    MemoryPlan later = issued;
    later.storages[moved].fetches[0].at.op += 2;
    EXPECT_GT(end_of(later), without) << "two kernels later is not safe";
  }
}

TEST_F(LatestSafe, WithoutTimeOnTheLinkTheyFollowTheDrop) {
  plan_.storages = {moved(a_, made_a_, between_[kBetween - 4], reads_a_)};
  const MemoryPlan issued = issued_latest_safe(plan_, StepProfile(trace_, machine_));
  EXPECT_EQ(issued.storages[0].fetches[0].at, (PlanPoint{between_[kBetween - 4], true, 2}));
  EXPECT_LT(end_of(issued), end_of(plan_)) << "late, but less";
}

// The host reaches an alloc long before the device comes to the kernel behind it.
TEST_F(LatestSafe, PointsOfTheHostCountWhenTheDeviceComesToThem) {
  const PlanPoint by_kernel = issued_latest_safe(plan_, StepProfile(trace_, machine_)).storages[0].fetches[0].at;
  plan_.storages[0].fetches[0].at = {asks_, false, 0};
  EXPECT_EQ(issued_latest_safe(plan_, StepProfile(trace_, machine_)).storages[0].fetches[0].at, by_kernel);
}

TEST_F(LatestSafe, WhatIsStagedTakesTimeOnEachOfItsLinks) {
  plan_.tiers[0].tier = "nvme", plan_.tiers[0].tier_class = TierClass::storage, plan_.tiers[0].through = "host";
  plan_.storages = {moved(a_, made_a_, made_a_, reads_a_)};
  const MemoryPlan issued = issued_latest_safe(plan_, StepProfile(trace_, machine_));
  // Read at 4 GB/s, then sent at 10 GB/s: 350 ms before the read of a, which is a kernel before that of b.
  const PlanPoint at = issued.storages[0].fetches[0].at;
  EXPECT_NEAR(static_cast<double>(ahead(at)), 36.5, 0.6);
}

TEST_F(LatestSafe, StandsInThePlansFile) {
  const ScratchFolder folder;
  write_content(folder / "a.plan", to_json(plan_, trace_, "a test"));
  EXPECT_EQ(read_plan(folder / "a.plan", trace_, machine_), plan_);
}

TEST_F(LatestSafe, ATierThatTheMachineLacksIsNamed) {
  plan_.tiers[0].tier = "attic";
  try {
    issued_latest_safe(plan_, StepProfile(trace_, machine_));
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("'attic'"), std::string::npos);
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
