// Where a block finds no place in one piece, does what holds the segments in its way leave, and nothing else?
#include "policies/planners/room_in_one_piece.h"

#include <gtest/gtest.h>

#include "policies/plan/plan_check.h"
#include "policies/planners/host_transfer.h"
#include "tests/support/step_program.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kKilobyte = 1024;

// A large parameter and a small one behind it in the same segment of 24 MiB, both used at the beginning and at the end;
// between, a block of 40 MiB. Beside another small one, which has a segment of 20 MiB, it has a place only once the first
// segment is given back.
struct SharedSegment {
  // `are_used`: all small ones are, by the op that needs the large block.
  explicit SharedSegment(bool are_used = false) {
    StepProgram p;
    large = p.preexisting(MiB(22) + 512 * kKilobyte, StorageKind::parameter, "large");
    small = p.preexisting(MiB(1) + 256 * kKilobyte, StorageKind::parameter, "small");
    const StorageId other = p.preexisting(MiB(2), StorageKind::parameter, "other");
    p.op("begin", {large, small, other}, {});
    p.op("more", {other}, {});
    const StorageId block = p.make(MiB(40), "block");
    p.op("loss", are_used ? std::vector{small, other} : std::vector<StorageId>{}, {block});
    p.drop(block);
    p.backward();
    p.op("back", {other}, {});
    p.op("end", {large, small}, {});
    trace = std::move(p).finish();
    machine = test_machine();
    Tier& device = machine.tiers[static_cast<std::size_t>(machine.tier("hbm"))];
    device.capacity = device.unavailable + kDevice;
    device.compression_ratio = 1;
    profile.emplace(trace, machine);
    pricer = test_pricer(machine);
  }

  // The large parameter leaves before the block.
  MemoryPlan moves_large() const {
    MemoryPlan plan;
    plan.tiers.push_back(to_host());
    StorageDecision d;
    d.storage = large;
    const Gap* gap = nullptr;
    for (const Gap& one : profile->gaps(large))
      if (!one.wraps) gap = &one;
    d.copies.push_back({{gap->after, true, 0}, 0});
    d.drops.push_back({{gap->after, true, 1}});
    d.fetches.push_back({{gap->before, false, 0}, 0});
    plan.storages.push_back(d);
    return plan;
  }
  SimulatedPlan simulated(const MemoryPlan& plan) const { return simulate_plan_on(*profile, plan, machine, *pricer); }
  TierResult device(const MemoryPlan& plan) const { return simulated(plan).result.tiers[0]; }
  std::optional<MemoryPlan> with_room(const MemoryPlan& plan, const PlanAllocator& allocator = {}) const {
    return with_room_in_one_piece(plan, simulated(plan), *profile, machine, allocator);
  }

  static constexpr Bytes kDevice = MiB(66);
  StorageId large = 0, small = 0;
  Trace trace;
  Machine machine;
  std::optional<StepProfile> profile;
  std::unique_ptr<Pricer> pricer;
};

TEST(RoomInOnePiece, WhatHoldsTheSegmentLeaves) {
  const SharedSegment step;
  const MemoryPlan plan = step.moves_large();
  const TierResult before = step.device(plan);
  ASSERT_EQ(before.missing, MiB(40)) << "all of the block";
  ASSERT_LT(before.peak_allocated, SharedSegment::kDevice) << "enough bytes are free";
  const auto cleared = step.with_room(plan);
  ASSERT_TRUE(cleared);
  ASSERT_EQ(cleared->storages.size(), 2u) << "the small one, and not the other, of whose segment more is used";
  EXPECT_EQ(cleared->storages.back().storage, step.small);
  EXPECT_TRUE(check_plan(*cleared, step.trace, step.profile->flow()).empty());
  EXPECT_EQ(step.device(*cleared).missing, 0);
}

TEST(RoomInOnePiece, NothingLeavesThatIsUsedThen) {
  const SharedSegment step(true);
  const MemoryPlan plan = step.moves_large();
  ASSERT_GT(step.device(plan).missing, 0);
  EXPECT_FALSE(step.with_room(plan));
}

TEST(RoomInOnePiece, NothingIsDoneWhereAllHaveAPlace) {
  SharedSegment step;
  const MemoryPlan plan = step.moves_large();
  step.machine.tiers[0].capacity += MiB(20);
  ASSERT_EQ(step.device(plan).missing, 0);
  EXPECT_FALSE(step.with_room(plan));
}

TEST(RoomInOnePiece, SegmentsThatGrowAreLeftAlone) {
  const SharedSegment step;
  EXPECT_FALSE(step.with_room(step.moves_large(), {"pytorch", "expandable_segments:True"}));
  EXPECT_FALSE(step.with_room(step.moves_large(), {"ideal", ""}));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
