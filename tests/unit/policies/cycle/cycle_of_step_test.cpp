// A step written down op by op as a cycle; its re-runs, its certificate, and a plan of moves as a memory plan.
#include "policies/cycle/cycle_of_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "policies/cycle/cycle_memory_plan.h"
#include "policies/cycle/plan_certificate.h"
#include "policies/cycle/rerun_prices.h"
#include "policies/cycle/step_reruns.h"
#include "sim/error.h"
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

// Forward makes `saved` of the weight in half a second; a second each of two ops beside which it rests; backward reads
// it. 20 GB are the most that live, for two seconds of four and a half.
struct SmallStep {
  StorageId weight = 0, saved = 0, other = 0;
  OpId makes = 0, beside = 0, reads = 0;
  Trace trace;
  SmallStep() {
    StepProgram p;
    weight = p.preexisting(1'000'000, StorageKind::parameter, "weight");
    saved = p.make(10 * kGB, "saved");
    makes = p.op("make", {weight}, {saved}, lasting(0.5));
    other = p.make(10 * kGB, "other");
    beside = p.op("fill", {weight}, {other}, lasting(1));
    p.op("read", {other}, {}, lasting(1));
    p.drop(other);
    p.backward();
    reads = p.op("backward", {saved, weight}, {}, lasting(2));
    p.drop(saved);
    p.optimizer();
    trace = std::move(p).finish();
  }
};

class SmallStepTest : public testing::Test {
 protected:
  const SmallStep step_;
  const Machine machine_ = test_machine();
  const StepProfile profile_{step_.trace, machine_};
  const CycledStep cycled_ = cycle_of_step(profile_);
  const StepCycle cycle_{cycled_.program};
  const CycleLinks links_ = links_of_machine(machine_, {"host"});

  std::uint32_t gap_of(StorageId storage) const {
    for (std::uint32_t g = 0; g < cycle_.gaps().size(); ++g)
      if (cycled_.storages[cycle_.gaps()[g].storage] == storage) return g;
    ADD_FAILURE() << "storage " << storage << " has no gap";
    return 0;
  }
};

using CycleOfStep = SmallStepTest;
using StepReruns = SmallStepTest;
using CycleMemoryPlan = SmallStepTest;
using PlanCertificateOf = SmallStepTest;

TEST_F(CycleOfStep, SlotsAreTheMainStreamsWork) {
  ASSERT_EQ(cycle_.size(), 4u);
  EXPECT_EQ(cycled_.places[1].op, step_.beside);
  EXPECT_EQ(cycled_.slot_of[step_.reads], 3u);
  EXPECT_NEAR(to_seconds(cycle_.turn()), 4.5, 1e-6);
  const CycleGap& gap = cycle_.gaps()[gap_of(step_.saved)];
  EXPECT_EQ(gap.begin, 1);
  EXPECT_EQ(gap.end, 3);
  EXPECT_TRUE(gap.needs_copy);
  EXPECT_FALSE(cycle_.gaps()[gap_of(step_.weight)].needs_copy) << "no op writes it";
  const Bytes weight = profile_.held(step_.weight), saved = profile_.held(step_.saved),
              other = profile_.held(step_.other);
  EXPECT_EQ(cycle_.live(),
            (std::vector<Bytes>{weight + saved, weight + saved + other, weight + saved + other, weight + saved}));
}

TEST(LinksOfMachine, AreWaysToTheTiers) {
  const Machine machine = test_machine();
  const CycleLinks host = links_of_machine(machine, {"host"});
  ASSERT_EQ(host.paths.size(), 1u);
  EXPECT_DOUBLE_EQ(host.paths[0].out_rate, 10e9);
  EXPECT_TRUE(host.paths[0].pinned);
  const CycleLinks both = links_of_machine(machine, {"host", "nvme"});
  EXPECT_DOUBLE_EQ(both.paths[1].out_rate, 2e9) << "through the host, as fast as it writes";
  EXPECT_DOUBLE_EQ(both.paths[1].in_rate, 4e9);
  EXPECT_DOUBLE_EQ(both.total_out, 10e9) << "both pass PCIe";
  EXPECT_DOUBLE_EQ(both.total_in, 10e9);
  EXPECT_FALSE(host.paths[0].is_staged());
  EXPECT_TRUE(both.paths[1].is_staged());
  EXPECT_EQ(both.paths[1].staged_out_rate, host.total_out);
  EXPECT_EQ(both.paths[1].staged_in_rate, host.total_in);
  EXPECT_EQ(links_of_machine(machine, {"nvme"}).staged_out, host.total_out);
  EXPECT_THROW(links_of_machine(machine, {"floppy"}), UsageError);
}

TEST_F(StepReruns, OffersWhatCanBeMadeAgain) {
  const Bytes budget = 12 * kGB;
  const std::vector<RerunCandidate> candidates = rerun_candidates(profile_, cycled_, budget, {64, budget});
  ASSERT_EQ(candidates.size(), 1u);
  EXPECT_EQ(candidates[0].gap.storage, step_.saved);
  EXPECT_NEAR(candidates[0].seconds_per_byte, 0.5 / static_cast<double>(profile_.held(step_.saved)), 1e-16);
  EXPECT_TRUE(rerun_candidates(profile_, cycled_, 30 * kGB, {64, budget}).empty()) << "all fits";
  EXPECT_TRUE(rerun_candidates(profile_, cycled_, budget, {64, kGB}).empty()) << "it may write a GB alone";
}

TEST_F(StepReruns, StandRightBeforeTheUse) {
  const auto candidates = rerun_candidates(profile_, cycled_, 12 * kGB, {64, 12 * kGB});
  const CycleWithReruns again = cycle_with_reruns(profile_, cycled_, candidates, 1);
  ASSERT_EQ(again.step.places.size(), 5u);
  EXPECT_TRUE(again.step.places[3].is_rerun);
  EXPECT_EQ(again.step.places[4].op, step_.reads);
  ASSERT_EQ(again.reruns.size(), 1u);
  EXPECT_EQ(again.reruns[0].ops, std::vector<OpId>{step_.makes});
  ASSERT_EQ(again.decisions.size(), 1u);
  EXPECT_EQ(again.decisions[0].storage, step_.saved);
  ASSERT_EQ(again.decisions[0].drops.size(), 1u);
  EXPECT_EQ(again.decisions[0].drops[0].at.op, step_.makes);
  const StepCycle cycle(again.step.program);
  EXPECT_NEAR(to_seconds(cycle.turn()), 5, 1e-6);
  EXPECT_LE(cycle.peak(), profile_.held(step_.saved) + profile_.held(step_.weight));
}

// A re-run keeps what it makes for the use behind it: no copy may stand between the two, so that what comes back and
// then waits for another use leaves again behind the first one only.
TEST(StepRerunsOfTwoUses, LeaveAgainBehindTheFirstUse) {
  StepProgram p;
  const StorageId weight = p.preexisting(1'000'000, StorageKind::parameter, "weight");
  const StorageId saved = p.make(10 * kGB, "saved");
  p.op("make", {weight}, {saved}, lasting(0.5));
  const auto fill = [&] {
    const StorageId other = p.make(10 * kGB, "other");
    p.op("fill", {weight}, {other}, lasting(2));
    p.drop(other);
  };
  fill();
  p.backward();
  const OpId first = p.op("backward", {saved, weight}, {}, lasting(1));
  fill();
  const OpId second = p.op("backward", {saved, weight}, {}, lasting(1));
  p.drop(saved);
  p.optimizer();
  const Trace trace = std::move(p).finish();
  const Machine machine = test_machine();
  const StepProfile profile(trace, machine);
  const CycledStep step = cycle_of_step(profile);
  const auto candidates = rerun_candidates(profile, step, 12 * kGB, {64, 20 * kGB});
  const auto before_first =
      std::ranges::find_if(candidates, [&](const RerunCandidate& c) { return c.gap.before == first; });
  ASSERT_NE(before_first, candidates.end());
  const CycleWithReruns again = cycle_with_reruns(profile, step, {*before_first}, 1);
  const auto used = static_cast<std::int32_t>(again.step.slot_of[first]);
  ASSERT_TRUE(again.step.places[static_cast<std::size_t>(used) - 1].is_rerun);
  const StepCycle cycle(again.step.program);
  const auto waits = std::ranges::find_if(cycle.gaps(), [&](const CycleGap& gap) {
    return again.step.storages[gap.storage] == saved &&
           gap.end == static_cast<std::int32_t>(again.step.slot_of[second]);
  });
  ASSERT_NE(waits, cycle.gaps().end());
  EXPECT_TRUE(waits->needs_copy);
  EXPECT_EQ(waits->written, used) << "slot " << used - 1 << " is the re-run";
}

// What another stream uses is there from the slot before on; what is made again for it is not, and cannot be moved
// there.
TEST(StepRerunsOfOtherStreams, LeaveNothingAheadOfThem) {
  StepProgram p;
  const std::uint16_t beside = p.builder().add_stream("beside", StreamRole::communication);
  const StorageId weight = p.preexisting(1'000'000, StorageKind::parameter, "weight");
  const StorageId saved = p.make(10 * kGB, "saved");
  const OpId makes = p.op("make", {weight}, {saved}, lasting(0.5));
  const StorageId other = p.make(10 * kGB, "other");
  p.op("fill", {weight}, {other}, lasting(1));
  p.op("read", {other}, {}, lasting(1));
  p.drop(other);
  p.backward();
  for (int i = 0; i < 3; ++i) p.op("work", {weight}, {}, lasting(1));
  Op call = p.here(OpKind::event_record);
  call.target = p.builder().add_event();
  p.builder().append(call);
  p.on_stream(beside);
  call.kind = OpKind::event_wait, call.stream = beside;
  p.builder().append(call);
  const OpId reads = p.op("send", {saved}, {}, lasting(1));
  p.on_stream(0);
  p.op("backward", {saved, weight}, {}, lasting(1));
  p.drop(saved);
  p.optimizer();
  const Trace trace = std::move(p).finish();
  const Machine machine = test_machine();
  const StepProfile profile(trace, machine);
  const CycledStep step = cycle_of_step(profile);
  const auto candidates = rerun_candidates(profile, step, 12 * kGB, {64, 20 * kGB});
  ASSERT_EQ(candidates.size(), 1u);
  ASSERT_EQ(candidates[0].gap.before, reads);
  const CycleWithReruns again = cycle_with_reruns(profile, step, candidates, 1);
  const std::uint32_t dropped = again.step.slot_of[makes], rerun = again.step.slot_of[reads] - 1;
  ASSERT_TRUE(again.step.places[rerun].is_rerun);
  for (std::size_t c = 0; c < again.step.storages.size(); ++c) {
    if (again.step.storages[c] != saved) continue;
    const CycleStorage& piece = again.step.program.storages[c];
    EXPECT_TRUE(piece.last <= dropped || piece.first >= rerun) << piece.first << " to " << piece.last;
  }
  EXPECT_LE(StepCycle(again.step.program).peak(), profile.held(saved) + profile.held(weight));
}

// Half a second makes the mean of 1 MB, which moves in 0.2 ms; a tenth makes `saved` of it. The step gives the mean
// back.
TEST(StepRerunsOfMeans, StartFromSmallResultsThatAreKept) {
  StepProgram p;
  const StorageId weight = p.preexisting(1'000'000, StorageKind::parameter, "weight");
  const StorageId mean = p.make(1'000'000, "mean");
  const OpId averages = p.op("mean", {weight}, {mean}, lasting(0.5));
  const StorageId saved = p.make(10 * kGB, "saved");
  const OpId makes = p.op("center", {weight, mean}, {saved}, lasting(0.1));
  p.drop(mean);
  const StorageId other = p.make(10 * kGB, "other");
  p.op("fill", {weight}, {other}, lasting(1));
  p.drop(other);
  p.backward();
  const OpId reads = p.op("backward", {saved, weight}, {}, lasting(2));
  p.drop(saved);
  p.optimizer();
  const Trace trace = std::move(p).finish();
  const Machine machine = test_machine();
  const StepProfile profile(trace, machine);
  CycledStep step = cycle_of_step(profile);
  const RerunLimits limits{64, 20 * kGB};
  const auto both = cycle_with_reruns(profile, step, rerun_candidates(profile, step, 12 * kGB, limits), 1);
  ASSERT_EQ(both.reruns.size(), 1u);
  EXPECT_EQ(both.reruns[0].ops, (std::vector<OpId>{averages, makes}));
  EXPECT_TRUE(both.keeps.empty());

  step.kept = results_worth_keeping(profile, links_of_machine(machine, {"host"}));
  EXPECT_TRUE(step.kept[mean]);
  EXPECT_FALSE(step.kept[saved]) << "it moves in less time than 4 times what makes it";
  EXPECT_FALSE(step.kept[weight]);
  const auto candidates = rerun_candidates(profile, step, 12 * kGB, limits);
  ASSERT_EQ(candidates.size(), 1u);
  EXPECT_NEAR(candidates[0].seconds_per_byte, 0.1 / static_cast<double>(profile.held(saved)), 1e-16);
  const CycleWithReruns one = cycle_with_reruns(profile, step, candidates, 1);
  ASSERT_EQ(one.reruns.size(), 1u);
  EXPECT_EQ(one.reruns[0].ops, std::vector<OpId>{makes});
  ASSERT_EQ(one.keeps.size(), 1u);
  EXPECT_EQ(one.keeps[0].storage, mean);
  EXPECT_EQ(one.keeps[0].until, one.reruns[0].at);
  const auto kept = std::ranges::find(one.step.storages, mean) - one.step.storages.begin();
  const CycleStorage& lives = one.step.program.storages[static_cast<std::size_t>(kept)];
  EXPECT_EQ(lives.last + 1, one.step.slot_of[reads]) << "up to the re-run";
  EXPECT_TRUE(lives.fixed);
}

TEST_F(StepReruns, PricesAreOfTheCheapestProducer) {
  const RerunPrices prices = least_rerun_prices(profile_, cycled_, cycle_);
  EXPECT_NEAR(prices[gap_of(step_.saved)].seconds_per_byte, 0.5 / static_cast<double>(profile_.held(step_.saved)),
              1e-16);
  EXPECT_TRUE(std::isinf(prices[gap_of(step_.weight)].seconds_per_byte)) << "it lived before the step";
}

// `saved` is made of `half`, which lives no longer than that, and `half` of a weight that another op overwrites.
struct ChainedStep {
  StorageId saved = 0;
  OpId overwrites = 0;
  Trace trace;
  explicit ChainedStep(Bytes half_bytes) {
    StepProgram p;
    const StorageId weight = p.preexisting(1'000'000, StorageKind::parameter, "weight");
    const StorageId half = p.make(half_bytes, "half");
    p.op("half", {weight}, {half}, lasting(0.25));
    saved = p.make(10 * kGB, "saved");
    p.op("make", {half, weight}, {saved}, lasting(0.5));
    p.drop(half);
    const StorageId other = p.make(10 * kGB, "other");
    p.op("fill", {}, {other}, lasting(1));
    p.drop(other);
    p.backward();
    overwrites = p.op("overwrite", {}, {weight}, lasting(1));
    p.op("backward", {saved}, {}, lasting(2));
    p.drop(saved);
    p.optimizer();
    trace = std::move(p).finish();
  }
};

RerunPrice price_of_saved(const ChainedStep& step, const Machine& machine) {
  const StepProfile profile(step.trace, machine);
  const CycledStep cycled = cycle_of_step(profile);
  const StepCycle cycle(cycled.program);
  const RerunPrices prices = least_rerun_prices(profile, cycled, cycle);
  for (std::size_t g = 0; g < prices.size(); ++g)
    if (cycled.storages[cycle.gaps()[g].storage] == step.saved) {
      EXPECT_EQ(prices[g].until, static_cast<std::int32_t>(cycled.slot_of[step.overwrites]));
      EXPECT_EQ(prices[g].lost_from, 2);
      EXPECT_EQ(prices[g].inputs_from, 0);
      return prices[g];
    }
  ADD_FAILURE() << "it has no gap";
  return {0};
}

TEST_F(StepReruns, PricesHaveWhatIsLost) {
  // As large as what is made of it: it is made again, too.
  RerunPrice price = price_of_saved(ChainedStep(10 * kGB), machine_);
  EXPECT_NEAR(price.seconds_per_byte * 10e9, 0.5, 1e-3);
  EXPECT_NEAR(price.with_inputs * 10e9, 0.75, 1e-3);
  // Kept instead, it takes a tenth of the bytes: 0.5 / 0.9.
  price = price_of_saved(ChainedStep(kGB), machine_);
  EXPECT_NEAR(price.seconds_per_byte * 10e9, 0.5, 1e-3);
  EXPECT_NEAR(price.with_inputs * 10e9, 0.5 / 0.9, 1e-3);
}

// The price is where it equals what it adds up to, found by halving, whichever piece of the sum that lies on.
TEST_F(StepReruns, PricesAreFixedPoints) {
  for (const Bytes input : {kGB, 2 * kGB, 4 * kGB, 5 * kGB, 8 * kGB, 10 * kGB}) {
    const RerunPrice price = price_of_saved(ChainedStep(input), machine_);
    const auto bytes = static_cast<double>(input);
    const double own = price.seconds_per_byte;
    double least = own, most = 1;
    for (int i = 0; i < 200; ++i) {
      const double middle = (least + most) / 2;
      (own + std::min(0.25, middle * bytes) / 10e9 >= middle ? least : most) = middle;
    }
    EXPECT_NEAR(price.with_inputs / least, 1, 2e-3) << input;
    EXPECT_LE(price.with_inputs, least * (1 + 1e-4)) << input;
  }
}

// At 12 GB 8 of the 10 GB of `saved` have to leave between the ends of ops 0 and 1, and be back between the last two:
// of plans that move all of it, a second each. A GB more of memory is worth nothing to these, a GB/s one of 11 parts.
TEST_F(PlanCertificateOf, ASmallStep) {
  const Bytes budget = 12 * kGB;
  const PlanCertificate c = plan_certificate(profile_, budget, links_);
  EXPECT_NEAR(c.ideal_seconds, 4.5, 1e-6);
  EXPECT_NEAR(c.moves_seconds, 4.5 + 1 + 1, 1e-3);
  EXPECT_NEAR(c.joint_seconds, 4.5 + 0.4, 1e-3) << "8 of 10 GB again: 0.4 s of half a second";
  EXPECT_NEAR(c.moves_per_gigabyte, 0, 1e-9);
  EXPECT_NEAR(c.joint_per_gigabyte, 0.05, 1e-3);
  EXPECT_NEAR(c.moves_per_out_rate, 1 - 10.0 / 11, 1e-3);
  EXPECT_NEAR(c.moves_per_in_rate, 1 - 10.0 / 11, 1e-3);
  EXPECT_NEAR(c.moves_per_rate, 2 - 20.0 / 11, 1e-3);
  EXPECT_NEAR(c.joint_per_out_rate, 0, 1e-9);
  EXPECT_EQ(c.peak.op, step_.beside);
  EXPECT_EQ(c.peak.bytes, cycle_.peak());
  EXPECT_EQ(c.least_budget, profile_.held(step_.other) + profile_.held(step_.weight));
  EXPECT_EQ(c.least_at, step_.makes) << "the first op that touches so much";
  ASSERT_FALSE(c.levers.empty());
  EXPECT_EQ(c.levers.back().peak.bytes, c.least_budget);
}

// Ahead of what is allocated for the slot's op: right behind the op before.
TEST_F(CycleMemoryPlan, MovesStandBeforeTheirSlots) {
  MovePlan moves;
  moves.moves.push_back({gap_of(step_.saved), 0, 1, 1, 3});
  moves.fetch_order.push_back(0);
  ASSERT_TRUE(is_sound(cycle_, moves));
  TransferStyle host;
  host.tier = "host";
  const MemoryPlan plan = memory_plan_of(cycled_, cycle_, moves, {host});
  ASSERT_EQ(plan.storages.size(), 1u);
  const StorageDecision& d = plan.storages[0];
  EXPECT_EQ(d.storage, step_.saved);
  EXPECT_EQ(d.home, StorageDecision::kDevice);
  EXPECT_EQ(d.held, StorageDecision::kDevice) << "nothing of it reaches into the next step";
  ASSERT_EQ(d.copies.size(), 1u);
  EXPECT_EQ(d.copies[0].at.op, step_.makes);
  EXPECT_TRUE(d.copies[0].at.after);
  ASSERT_EQ(d.drops.size(), 1u);
  EXPECT_EQ(d.drops[0].at.op, step_.makes);
  ASSERT_EQ(d.fetches.size(), 1u);
  EXPECT_EQ(d.fetches[0].at.op, step_.reads);
}

// What is away when the turn ends lives in its tier.
TEST_F(CycleMemoryPlan, WhatIsAwayAtTheBorderLivesInItsTier) {
  std::uint32_t wraps = 0;
  for (std::uint32_t g = 0; g < cycle_.gaps().size(); ++g)
    if (cycled_.storages[cycle_.gaps()[g].storage] == step_.weight && cycle_.gaps()[g].begin <= 2) wraps = g;
  const CycleGap& gap = cycle_.gaps()[wraps];
  ASSERT_EQ(gap.begin, 2) << "between slot 1 and slot 3";
  MovePlan moves;
  moves.moves.push_back({wraps, 0, PlannedMove::kNoCopy, 2, 3});
  moves.fetch_order.push_back(0);
  TransferStyle host;
  host.tier = "host";
  const MemoryPlan plan = memory_plan_of(cycled_, cycle_, moves, {host});
  ASSERT_EQ(plan.storages.size(), 1u);
  EXPECT_EQ(plan.storages[0].held, 0) << "a copy from the step before";
  EXPECT_TRUE(plan.storages[0].copies.empty());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
