// Does SwapAdvisor give up what is used furthest in the future, as seldom as can be, and fetch it as early as memory
// allows? By hand: kernels of 2 ms; 20 MB are 2 ms on the link.
#include <gtest/gtest.h>

#include <bit>
#include <optional>
#include <random>

#include "policies/plan/plan_check.h"
#include "policies/planners/planner.h"
#include "policies/profile/planned_memory.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/sample.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct SwapAdvisorPlan {
  SwapAdvisorPlan(const Trace& step, Bytes budget, const std::string& policy = "swapadvisor:min_bytes=0")
      : machine(test_machine()), profile(step, machine) {
    plan = planner_named(policy)(profile, {budget}, machine, *test_pricer(machine)).best;
    EXPECT_EQ(check_plan(plan, step, profile.flow()), std::vector<std::string>{});
  }
  std::size_t fetches() const {
    std::size_t count = 0;
    for (const StorageDecision& d : plan.storages) count += d.fetches.size();
    return count;
  }
  Machine machine;
  StepProfile profile;
  MemoryPlan plan;
};

Op of_two_ms() {
  Op op;
  op.duration = microseconds(2'000);
  return op;
}

OpId use(StepProgram& p, const std::vector<StorageId>& reads) {
  const OpId op = p.op("use", reads, {}, of_two_ms());
  p.op("other", {}, {}, of_two_ms());
  return op;
}

OpId large_use(StepProgram& p) {
  const StorageId large = p.make(80'000'000, "large");
  const OpId op = p.op("large", {}, {large}, of_two_ms());
  p.drop(large);
  p.op("other", {}, {}, of_two_ms());
  return op;
}

// a, b and c of 20 MB are made, rest beside 80 MB, and are used in the order b, c, a.
struct ThreeResting {
  ThreeResting() {
    StepProgram p;
    for (const char* label : {"a", "b", "c"}) {
      all.push_back(p.make(20'000'000, label));
      p.op("f", {}, {all.back()}, of_two_ms());
    }
    large = large_use(p);
    for (const std::size_t i : {1u, 2u, 0u}) {
      used[i] = use(p, {all[i]});
      p.drop(all[i]);
    }
    trace = std::move(p).finish();
  }
  std::vector<StorageId> all;
  OpId large = kNoOp, used[3] = {};
  Trace trace;
};

TEST(SwapAdvisor, WhatIsUsedFurthestInTheFutureLeaves) {
  const ThreeResting step;
  const SwapAdvisorPlan one(step.trace, 130'000'000), two(step.trace, 110'000'000);
  ASSERT_EQ(one.plan.storages.size(), 1u);
  EXPECT_EQ(one.plan.storages[0].storage, step.all[0]);
  ASSERT_EQ(two.plan.storages.size(), 2u);
  EXPECT_EQ(two.plan.storages[0].storage, step.all[0]);
  EXPECT_EQ(two.plan.storages[1].storage, step.all[2]);
  EXPECT_LE(planned_peak(two.profile, two.plan), 110'000'000);
}

TEST(SwapAdvisor, ItLeavesWhereMemoryLacksAndComesBackWhereItDoesNot) {
  const ThreeResting step;
  const SwapAdvisorPlan planned(step.trace, 130'000'000);
  ASSERT_EQ(planned.plan.storages.size(), 1u);
  const StorageDecision& d = planned.plan.storages[0];
  EXPECT_EQ(d.copies[0].at, (PlanPoint{2, true, 0})) << "behind its last use: mark, alloc, f";
  EXPECT_EQ(step.trace.ops[d.drops[0].at.op].kind, OpKind::alloc) << "of the large one";
  EXPECT_EQ(d.drops[0].at.op + 1, step.large);
  EXPECT_EQ(step.trace.ops[d.fetches[0].at.op - 1].kind, OpKind::free) << "of the large one";
}

TEST(SwapAdvisor, WhatIsAwayAtTheEndIsAwayAtTheStart) {
  StepProgram p;
  const StorageId w = p.preexisting(20'000'000, StorageKind::parameter, "w");
  const OpId head = large_use(p);
  const OpId used = use(p, {w});
  const OpId tail = large_use(p);
  const Trace step = std::move(p).finish();
  const SwapAdvisorPlan planned(step, 90'000'000);
  ASSERT_EQ(planned.plan.storages.size(), 1u);
  const StorageDecision& d = planned.plan.storages[0];
  EXPECT_EQ(d.home, 0) << "it lives on the host";
  ASSERT_EQ(d.fetches.size(), 1u);
  EXPECT_GT(d.fetches[0].at.op, head);
  EXPECT_LE(d.fetches[0].at.op, used);
  EXPECT_EQ(d.copies[0].at.op, used);
  EXPECT_LE(d.drops[0].at.op, tail);
  EXPECT_LE(planned_peak(planned.profile, planned.plan), 90'000'000);
}

// It lacks at the start alone: the copy that the step before has left suffices.
TEST(SwapAdvisor, WhatLacksAtTheStartIsGivenUpThere) {
  StepProgram p;
  const StorageId w = p.preexisting(20'000'000, StorageKind::parameter, "w");
  p.op("other", {}, {}, of_two_ms());
  large_use(p);
  use(p, {w});
  const Trace step = std::move(p).finish();
  const SwapAdvisorPlan planned(step, 90'000'000);
  ASSERT_EQ(planned.plan.storages.size(), 1u);
  EXPECT_EQ(planned.plan.storages[0].home, StorageDecision::kDevice);
  EXPECT_EQ(planned.plan.storages[0].held, 0);
  EXPECT_LE(planned_peak(planned.profile, planned.plan), 90'000'000);
}

// Uses of storages of one size: op j reads one or two of five.
struct EqualSizes {
  explicit EqualSizes(unsigned seed) {
    std::mt19937 numbers(seed);
    const auto random = [&] { return static_cast<unsigned>(numbers()); };
    for (int j = 0; j < 9; ++j) {
      uses.push_back({random() % 5});
      if (const unsigned other = random() % 5; other != uses.back()[0] && random() % 2 == 0)
        uses.back().push_back(other);
    }
    StepProgram p;
    std::vector<std::optional<StorageId>> ids(5);
    for (std::size_t j = 0; j < uses.size(); ++j) {
      std::vector<StorageId> reads, writes;
      for (const unsigned s : uses[j]) {
        if (!ids[s]) writes.push_back(*(ids[s] = p.make(MiB(1), "s" + std::to_string(s))));
        reads.push_back(*ids[s]);
      }
      std::erase_if(reads, [&](StorageId id) { return std::find(writes.begin(), writes.end(), id) != writes.end(); });
      p.op("use", reads, writes, of_two_ms());
      for (const unsigned s : uses[j])
        if (last_use(s) == j) p.drop(*ids[s]);
      p.op("other", {}, {}, of_two_ms());
    }
    trace = std::move(p).finish();
  }
  std::size_t last_use(unsigned s) const {
    std::size_t last = 0;
    for (std::size_t j = 0; j < uses.size(); ++j)
      if (std::find(uses[j].begin(), uses[j].end(), s) != uses[j].end()) last = j;
    return last;
  }
  // The fewest rests between uses in which a storage must be away so that no more than `most` are there at any op.
  std::size_t fewest_swaps(std::size_t most) const {
    struct Rest {
      unsigned storage;
      std::size_t after, before;
    };
    std::vector<Rest> rests;
    std::vector<std::optional<std::size_t>> first(5), last(5);
    for (std::size_t j = 0; j < uses.size(); ++j)
      for (const unsigned s : uses[j]) {
        if (last[s]) rests.push_back({s, *last[s], j});
        if (!first[s]) first[s] = j;
        last[s] = j;
      }
    std::size_t best = rests.size() + 1;
    for (unsigned chosen = 0; chosen < 1u << rests.size(); ++chosen) {
      bool fits = true;
      for (std::size_t j = 0; j < uses.size() && fits; ++j) {
        std::size_t there = 0;
        for (unsigned s = 0; s < 5; ++s) there += first[s] && *first[s] <= j && j <= *last[s] ? 1 : 0;
        for (std::size_t r = 0; r < rests.size(); ++r)
          if ((chosen >> r & 1u) != 0 && rests[r].after < j && j < rests[r].before) --there;
        fits = there <= most;
      }
      if (fits) best = std::min(best, static_cast<std::size_t>(std::popcount(chosen)));
    }
    return best;
  }
  std::vector<std::vector<unsigned>> uses;
  Trace trace;
};

TEST(SwapAdvisor, OfEqualSizesAsFewAsCanBeAreSwapped) {
  std::size_t swapped = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const EqualSizes step(seed);
    for (const std::size_t most : {2u, 3u}) {
      const SwapAdvisorPlan planned(step.trace, MiB(static_cast<std::int64_t>(most)));
      EXPECT_EQ(planned.fetches(), step.fewest_swaps(most)) << "seed " << seed << ", room for " << most;
      EXPECT_LE(planned_peak(planned.profile, planned.plan), MiB(static_cast<std::int64_t>(most))) << seed;
      swapped += planned.fetches();
    }
  }
  EXPECT_GT(swapped, 60u) << "there is something to choose from";
}

TEST(SwapAdvisor, WhatFitsStaysAndWhatIsMissingIsSaid) {
  const ThreeResting step;
  EXPECT_EQ(SwapAdvisorPlan(step.trace, 150'000'000).plan.storages.size(), 0u);
  EXPECT_TRUE(
      has_note(rewritten(step.trace, "swapadvisor:min_bytes=0,budget=60MB"), "no plan was found that keeps to it"));
}

// Beside 80 MB there are at least these: that a is away beside the 20 MB would be in vain.
TEST(SwapAdvisor, NothingLeavesInVain) {
  StepProgram p;
  large_use(p);
  const StorageId a = p.make(20'000'000, "a");
  p.op("f", {}, {a}, of_two_ms());
  const StorageId b = p.make(20'000'000, "b");
  p.op("f", {}, {b}, of_two_ms());
  p.drop(b);
  use(p, {a});
  p.drop(a);
  EXPECT_EQ(SwapAdvisorPlan(std::move(p).finish(), 30'000'000).plan.storages.size(), 0u);
}

TEST(SwapAdvisor, WithoutAHostItIsRefused) {
  const ThreeResting step;
  Machine machine = test_machine();
  machine.tiers[static_cast<std::size_t>(machine.tier("host"))].name = "elsewhere";
  const StepProfile profile(step.trace, machine);
  EXPECT_THROW(planner_named("swapadvisor")(profile, {MiB(1)}, machine, *test_pricer(machine)), UsageError);
}

TEST(SwapAdvisor, KeepsToTheBudgetOfAWholeStep) {
  const Trace step = sample_gpt_124m();
  const Bytes all = PlannedMemory(StepProfile(step, test_machine())).peak();
  for (const int percent : {90, 60, 30}) {
    const Bytes budget = all * percent / 100;
    const SwapAdvisorPlan planned(step, budget, "swapadvisor");
    EXPECT_LE(planned_peak(planned.profile, planned.plan), budget) << percent;
    EXPECT_FALSE(planned.plan.storages.empty()) << percent;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
