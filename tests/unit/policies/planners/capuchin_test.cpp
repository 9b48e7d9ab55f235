// Does Capuchin swap by free time, and compute again what is cheaper? By hand: 10,000 bytes are 1 us on the link.
#include <gtest/gtest.h>

#include "tests/support/rewrite_checks.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace {

Bytes device_peak(const Trace& t) { return simulated(t).tiers[0].peak_allocated; }

std::size_t copies_out(const Trace& t) {
  return static_cast<std::size_t>(std::count_if(
      t.ops.begin(), t.ops.end(), [&](const Op& op) { return op.kind == OpKind::copy && t.places[op.from] == "hbm"; }));
}

// `a` rests while `between` ops of 1 us run, the middle one beside 40,000 bytes.
struct RestingStep {
  explicit RestingStep(std::size_t between, Duration producer = microseconds(1)) {
    StepProgram p;
    const StorageId weight = p.preexisting(512, StorageKind::parameter, "weight");
    const StorageId a = p.make(10'000, "a");
    Op cost;
    cost.duration = producer;
    p.op("f", {weight}, {a}, cost);
    for (std::size_t i = 0; i < between; ++i) {
      if (i != between / 2) {
        p.op("other", {}, {});
        continue;
      }
      const StorageId large = p.make(40'000, "large");
      p.op("large", {}, {large});
      p.drop(large);
    }
    p.backward();
    p.op("back", {a}, {});
    p.drop(a);
    p.optimizer();
    p.op("update", {weight}, {weight});
    trace = std::move(p).finish();
    trace.constants.event_latency = {};
  }
  Trace trace;
};

// Both together are 51,200 bytes of blocks with the weight.
constexpr const char* kTight = ",budget=45000,min_bytes=0";

TEST(Capuchin, WhatRestsForLongIsSwappedForNothing) {
  const RestingStep step(10);
  const Trace after = rewritten(step.trace, std::string("capuchin:use=both") + kTight);
  EXPECT_EQ(copies_out(after), 1u);
  EXPECT_EQ(count(after, Phase::recompute), 0u) << "its free time is 10 - 1 - 1 us";
  EXPECT_EQ(simulated(after).end, simulated(step.trace).end);
  EXPECT_LE(device_peak(after), 45'000);
}

TEST(Capuchin, WhatIsCheapToMakeIsComputedAgain) {
  const RestingStep step(1, nanoseconds(100));  // it rests for 1 us: the device would wait for both copies
  const Trace again = rewritten(step.trace, std::string("capuchin:use=both") + kTight);
  const Trace swapped = rewritten(step.trace, std::string("capuchin:use=swaps") + kTight);
  EXPECT_EQ(count(again, Phase::recompute), 1u);
  EXPECT_EQ(copies_out(again), 0u);
  EXPECT_EQ(copies_out(swapped), 1u);
  EXPECT_LT(simulated(again).end, simulated(swapped).end);
  EXPECT_LE(device_peak(again), 45'000);
  EXPECT_LE(device_peak(swapped), 45'000);
  expect_same_contents(step.trace, again);
}

TEST(Capuchin, WhatFitsStays) {
  const RestingStep step(10);
  const Trace after = rewritten(step.trace, "capuchin:budget=60000,min_bytes=0");
  EXPECT_EQ(after.ops.size(), step.trace.ops.size());
  EXPECT_TRUE(has_note(after, "nothing leaves the device"));
}

TEST(Capuchin, SaysWhatIsMissing) {
  const RestingStep step(10);
  const Trace after = rewritten(step.trace, "capuchin:budget=30000,min_bytes=0");  // less than the large one
  EXPECT_TRUE(has_note(after, "more are needed"));
}

}  // namespace
}  // namespace memwall
