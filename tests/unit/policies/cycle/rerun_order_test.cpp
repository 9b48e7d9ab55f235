// Does what has no time to move come before what is cheaper to make again?
#include "policies/cycle/rerun_order.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/small_cycle.h"
#include "tests/support/step_program.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Op lasting(double seconds) {
  Op cost;
  cost.duration = from_seconds(seconds);
  return cost;
}

// 15 GB live while `beside` does. Two seconds of work lie before and behind `early`'s rest, nothing before and behind
// that of `late`, which costs twice as much to make. Links carry 10 GB/s each way.
class RerunOrderTest : public testing::Test {
 protected:
  RerunOrderTest() {
    StepProgram p;
    const StorageId weight = p.preexisting(1'000'000, StorageKind::parameter, "weight");
    early_ = p.make(5 * kGB, "early");
    p.op("make_early", {weight}, {early_}, lasting(0.1));
    p.op("work", {weight}, {}, lasting(2));
    late_ = p.make(5 * kGB, "late");
    p.op("make_late", {weight}, {late_}, lasting(0.2));
    const StorageId beside = p.make(5 * kGB, "beside");
    p.op("fill", {weight}, {beside}, lasting(0.5));
    p.op("read", {beside}, {}, lasting(0.5));
    p.drop(beside);
    p.backward();
    p.op("backward_late", {late_, weight}, {}, lasting(1));
    p.drop(late_);
    p.op("work", {weight}, {}, lasting(2));
    p.op("backward_early", {early_, weight}, {}, lasting(1));
    p.drop(early_);
    p.optimizer();
    trace_ = std::move(p).finish();
  }

  // `slower`: so many times are the links.
  RerunOrder order(Bytes budget, Bytes least = 0, double share = 1.0 / 32, double slower = 1) const {
    const StepProfile profile(trace_, machine_);
    const CycledStep step = cycle_of_step(profile);
    CycleLinks links = links_of_machine(machine_, {"host"});
    links.total_out /= slower, links.total_in /= slower;
    const auto candidates = rerun_candidates(profile, step, budget, {64, 20 * kGB});
    return order_by_bound(profile, step, links, budget, candidates, {.share_per_round = share, .least_bytes = least});
  }

  static std::vector<StorageId> storages(const RerunOrder& order) {
    std::vector<StorageId> ids;
    for (const RerunCandidate& c : order.candidates) ids.push_back(c.gap.storage);
    return ids;
  }

  static constexpr double kIdeal = 7.3;
  const Machine machine_ = test_machine();
  StorageId early_ = 0, late_ = 0;
  Trace trace_;
};

// What a plan copies, or brings back from elsewhere, it does not make again.
TEST_F(RerunOrderTest, CandidatesOfAPlanAreTheGapsInWhichItDrops) {
  const StepProfile profile(trace_, machine_);
  const auto decision = [&](StorageId storage) {
    StorageDecision d;
    d.storage = storage;
    d.drops.push_back({{profile.gaps(storage).front().after, true}});
    return d;
  };
  MemoryPlan plan;
  plan.storages = {decision(late_), decision(early_)};
  const auto both = candidates_of_plan(profile, plan);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].gap.storage, early_) << "it is given up first";
  EXPECT_EQ(both[1].gap.storage, late_);
  EXPECT_NEAR(both[1].seconds_per_byte, 0.2 / (5 * kGB), 1e-15);
  plan.storages.front().copies.push_back({plan.storages.front().drops.front().at});
  EXPECT_EQ(candidates_of_plan(profile, plan).size(), 1u);
  plan.storages.back().drops.front().at.op = profile.gaps(early_).front().before;
  EXPECT_TRUE(candidates_of_plan(profile, plan).empty()) << "no use comes behind";
}

TEST_F(RerunOrderTest, WhatLacksTimeToMoveComesFirst) {
  const RerunOrder o = order(6 * kGB);  // both have to be away
  EXPECT_EQ(storages(o), (std::vector<StorageId>{late_, early_})) << "though early is the cheaper one";
  EXPECT_EQ(o.best, 1u) << "early has time to move";
  EXPECT_NEAR(o.seconds, kIdeal + 0.2, 1e-3) << "the re-run of late, and no wait";
}

TEST_F(RerunOrderTest, WhereNothingWaitsNothingIsChosen) {
  const RerunOrder o = order(11 * kGB);  // one of both: early moves
  EXPECT_EQ(o.best, 0u);
  EXPECT_EQ(storages(o), (std::vector<StorageId>{early_, late_})) << "as they were given, the cheapest first";
  EXPECT_NEAR(o.seconds, kIdeal, 1e-3);
}

TEST_F(RerunOrderTest, AllOfThemMayBeTheBest) {
  const RerunOrder o = order(6 * kGB, 0, 1.0 / 32, 1e6);  // nothing has time to move
  EXPECT_EQ(o.best, 2u);
  EXPECT_NEAR(o.seconds, kIdeal + 0.3, 1e-3) << "both re-runs, and no wait";
}

TEST_F(RerunOrderTest, SmallStoragesStayWhereThatIsPossible) {
  const StepProfile profile(trace_, machine_);
  const Bytes held = profile.held(early_);
  EXPECT_EQ(order(6 * kGB, held).best, 1u) << "early may move: it is no smaller";
  EXPECT_EQ(order(11 * kGB, held + 1).best, 0u) << "no plan without them is possible: they move";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
