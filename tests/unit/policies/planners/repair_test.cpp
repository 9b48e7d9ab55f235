// Is a planner asked for less until its plan keeps to the budget with the real allocator, and is the best plan taken?
#include "policies/planners/repair.h"

#include <gtest/gtest.h>

#include <mutex>
#include <optional>
#include <set>

#include "policies/planners/host_transfer.h"
#include "sim/error.h"
#include "tests/support/step_program.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kStorage = MiB(20);  // a segment of its own in PyTorch's allocator

// Four storages made in forward, read in backward: 80 MiB.
struct FourStorages {
  explicit FourStorages(Bytes in_optimizer = 0) {
    StepProgram p;
    std::vector<StorageId> all;
    for (int i = 0; i < 4; ++i) {
      all.push_back(p.make(kStorage, "a"));
      p.op("f", {}, {all.back()});
    }
    p.backward();
    for (std::size_t i = all.size(); i-- > 0;) {
      p.op("back", {all[i]}, {});
      p.drop(all[i]);
    }
    p.optimizer();
    if (in_optimizer > 0) {
      const StorageId workspace = p.make(in_optimizer, "workspace");
      p.op("update", {}, {workspace});
      p.drop(workspace);
    }
    p.op("update", {}, {});
    trace = std::move(p).finish();
    machine = test_machine();
    profile.emplace(trace, machine);
    pricer = test_pricer(machine);
  }

  // The first `count` storages wait on the host.
  MemoryPlan plan_of(std::size_t count) const {
    MemoryPlan plan;
    plan.tiers.push_back(to_host());
    for (const Gap& gap : profile->gaps()) {
      if (plan.storages.size() == count) break;
      StorageDecision d;
      d.storage = gap.storage;
      d.copies.push_back({{gap.after, true, 0}, 0});
      d.drops.push_back({{gap.after, true, 1}});
      d.fetches.push_back({{gap.before, false, 0}, 0});
      plan.storages.push_back(d);
    }
    return plan;
  }

  // Leaves so many storages on the device as the budget that it is asked for has room for, and `too_many` more.
  RepairedPlan repaired(Bytes budget, Bytes too_many, Duration worth = kNever) {
    const Planner planner = [&](const StepProfile&, const Budget& asked, const Machine&, const Pricer&) {
      budgets.push_back(asked.device);
      const Bytes stay = std::min<Bytes>(4, std::max<Bytes>(0, asked.device / kStorage) + too_many);
      return plan_of(static_cast<std::size_t>(4 - stay));
    };
    return repaired_plan(planner, *profile, {budget}, *pricer, {}, {.worth = worth});
  }

  Trace trace;
  Machine machine;
  std::optional<StepProfile> profile;
  std::unique_ptr<Pricer> pricer;
  std::vector<Bytes> budgets;  // that the planner was asked for
};

TEST(Repair, AsksForLessUntilItFits) {
  FourStorages step;
  const RepairedPlan repaired = step.repaired(3 * kStorage, 1);
  EXPECT_EQ(repaired.over, 0);
  EXPECT_TRUE(repaired.estimate.fits);
  EXPECT_EQ(repaired.plan.storages.size(), 1u);
  ASSERT_GE(step.budgets.size(), 2u);
  EXPECT_EQ(step.budgets[1], step.budgets[0] - kStorage) << "by what the first plan took too much";
}

TEST(Repair, TakesTheFirstPlanThatFits) {
  FourStorages step;
  EXPECT_EQ(step.repaired(3 * kStorage, 0).plan.storages.size(), 1u);
  EXPECT_EQ(step.budgets.size(), 1u);
}

TEST(Repair, LeavesAStepAsItIsThatFits) {
  FourStorages step;
  const RepairedPlan repaired = step.repaired(4 * kStorage, -4);  // the planner would move all of them
  EXPECT_TRUE(repaired.is_untouched);
  EXPECT_EQ(repaired.over, 0);
  EXPECT_EQ(step.budgets.size(), 0u);
}

// The peak is where nothing rests: plans only make the step slower.
TEST(Repair, LeavesAStepAsItIsThatNoPlanHelps) {
  FourStorages step(5 * kStorage);
  const RepairedPlan repaired = step.repaired(2 * kStorage, 0);
  EXPECT_EQ(repaired.over, 3 * kStorage);
  EXPECT_TRUE(repaired.is_untouched);
  EXPECT_GT(step.budgets.size(), 0u);
}

TEST(Repair, AFasterPlanIsTheFirstThatKeepsToTheBudget) {
  FourStorages step;
  // Storages that leave, by what is asked for in storages.
  const Planner planner = [&](const StepProfile&, const Budget& asked, const Machine&, const Pricer&) {
    step.budgets.push_back(asked.device);
    return step.plan_of(static_cast<std::size_t>(4 - asked.device / kStorage));
  };
  const auto faster = [&](std::vector<Bytes> asked, Duration worth) {
    step.budgets.clear();
    return faster_plan(planner, asked, *step.profile, {2 * kStorage}, *step.pricer, {}, worth, false);
  };
  const auto one = faster({3 * kStorage, 2 * kStorage, kStorage}, kNever);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->plan.storages.size(), 2u);
  EXPECT_EQ(one->over, 0);
  EXPECT_EQ(one->asked, 2 * kStorage);
  EXPECT_TRUE(one->estimate.fits);
  EXPECT_EQ(step.budgets.size(), 2u);
  EXPECT_FALSE(faster({2 * kStorage, kStorage}, one->step_time)) << "no faster than what is known";
  EXPECT_FALSE(faster({4 * kStorage, 2 * kStorage}, kNever)) << "it has none that leaves";
  EXPECT_EQ(step.budgets.size(), 1u);
}

TEST(Repair, AnyPlanMayBeEnough) {
  FourStorages step;
  const Planner planner = [&](const StepProfile&, const Budget& asked, const Machine&, const Pricer&) {
    step.budgets.push_back(asked.device);
    return step.plan_of(4);
  };
  const RepairedPlan any = repaired_plan(planner, *step.profile, {3 * kStorage}, *step.pricer, {}, {.any = true});
  EXPECT_EQ(any.over, 0);
  EXPECT_EQ(step.budgets.size(), 1u);
}

TEST(Repair, TheFallbackIsTakenWhereItKeepsToTheBudgetOrNeedsMuchLessInTwiceTheTime) {
  const auto plan = [](Bytes over, Duration time) {
    RepairedPlan made;
    made.over = over;
    made.step_time = time;
    return made;
  };
  const Budget budget{100 * MiB(1)};
  const RepairedPlan best = plan(10 * MiB(1), microseconds(100));
  EXPECT_TRUE(takes_other(best, plan(0, microseconds(9000)), budget));
  EXPECT_TRUE(takes_other(best, plan(8 * MiB(1), microseconds(200)), budget));
  EXPECT_TRUE(takes_other(best, plan(8 * MiB(1), microseconds(900)), budget)) << "however slow: it comes nearest";
  EXPECT_FALSE(takes_other(best, plan(9 * MiB(1), microseconds(50)), budget)) << "not more than 1 % of the budget";
  const RepairedPlan keeps = plan(0, microseconds(100));
  EXPECT_TRUE(takes_other(keeps, plan(0, microseconds(99)), budget));
  EXPECT_FALSE(takes_other(keeps, plan(0, microseconds(101)), budget));
  EXPECT_FALSE(takes_other(keeps, plan(1, microseconds(1)), budget));
  EXPECT_TRUE(asks_other(best, microseconds(100), 0.1));
  EXPECT_TRUE(asks_other(keeps, microseconds(90), 0.1));
  EXPECT_FALSE(asks_other(keeps, microseconds(91), 0.1));
}

TEST(Repair, APlanMayBeTakenAsItIsMade) {
  FourStorages step;
  const Planner planner = [&](const StepProfile&, const Budget& asked, const Machine&, const Pricer&) {
    step.budgets.push_back(asked.device);
    return step.plan_of(1);
  };
  for (const Bytes budget : {2 * kStorage, 4 * kStorage}) {
    const RepairedPlan made = plan_as_made(planner, *step.profile, {budget}, *step.pricer);
    EXPECT_EQ(made.plan.storages.size(), 1u);
    EXPECT_EQ(made.over, budget == 2 * kStorage ? kStorage : 0);
  }
  EXPECT_EQ(step.budgets, (std::vector<Bytes>{2 * kStorage, 4 * kStorage}));
}

TEST(Repair, GoesBackToTheMostThatFits) {
  FourStorages step;
  // Two too many: it has to be asked for less than one storage until two stay, and those fit.
  const RepairedPlan repaired = step.repaired(2 * kStorage + kStorage / 2, 2);
  EXPECT_EQ(repaired.over, 0);
  EXPECT_EQ(repaired.plan.storages.size(), 2u);
}

TEST(Repair, EndsWithTheBestWhereNothingFits) {
  FourStorages step;
  const RepairedPlan repaired = step.repaired(kStorage / 2, 0);  // less than one storage
  EXPECT_GT(repaired.over, 0);
  EXPECT_FALSE(repaired.estimate.fits);
  EXPECT_EQ(repaired.plan.storages.size(), 3u) << "the fourth never rests";
  EXPECT_LE(step.budgets.size(), 8u);
}

// A plan for less makes the step no faster: nothing is asked for below one that is slower than what is known.
TEST(Repair, AsksForLessOnlyWhereThatCouldBeWorthIt) {
  const Bytes budget = 2 * kStorage + kStorage / 2;
  FourStorages first;
  const Duration fitting = first.repaired(budget, 2).step_time;
  ASSERT_GT(first.budgets.size(), 2u);
  FourStorages known;
  EXPECT_EQ(known.repaired(budget, 2, fitting).over, 0) << "as fast as what is known: all is looked at";
  EXPECT_EQ(known.budgets, first.budgets);
  FourStorages faster;
  const RepairedPlan given_up = faster.repaired(budget, 2, first.profile->step_time() / 2);
  EXPECT_GT(given_up.over, 0);
  EXPECT_EQ(faster.budgets.size(), 1u) << "the first plan, of which too much stays, is slower already";
}

// Which of several plans for one budget the allocator has a place for, only trying shows: no other budget is asked for.
TEST(Repair, TriesOthersThatWereProposedForTheSameBudget) {
  FourStorages step;
  std::vector<Bytes> budgets;
  const Planner planner = [&](const StepProfile&, const Budget& asked, const Machine&, const Pricer&) {
    budgets.push_back(asked.device);
    return ProposedPlans(step.plan_of(0), {step.plan_of(1), step.plan_of(2)});
  };
  const RepairedPlan repaired = repaired_plan(planner, *step.profile, {3 * kStorage}, *step.pricer);
  EXPECT_EQ(repaired.over, 0);
  EXPECT_EQ(repaired.plan.storages.size(), 1u) << "the first of them that keeps to it";
  EXPECT_EQ(budgets, (std::vector<Bytes>{3 * kStorage}));
}

// A planner is told what is known; where it has nothing better, more is asked for as long as that may help.
TEST(Repair, AsksForMoreWhereNothingIsWorthItForLess) {
  FourStorages step;
  std::vector<Bytes> budgets;
  const Duration known = step.profile->step_time() * 3;
  const Planner planner = [&](const StepProfile&, const Budget& asked, const Machine&, const Pricer&) {
    budgets.push_back(asked.device);
    EXPECT_EQ(asked.worth, known);
    ProposedPlans none{MemoryPlan{}};
    none.too_slow = true;
    return none;
  };
  const RepairedPlan repaired = repaired_plan(planner, *step.profile, {2 * kStorage}, *step.pricer, {},
                                              {.first_asked = kStorage, .most_tries = 3, .worth = known});
  EXPECT_TRUE(repaired.is_untouched);
  EXPECT_EQ(budgets, (std::vector<Bytes>{kStorage, kStorage + kStorage / 2, kStorage + kStorage * 3 / 4}));
}

// Where so much work is done and a plan is known that keeps to the budget, no more is asked for.
TEST(Repair, EndsBehindSoMuchWork) {
  for (const bool is_known : {false, true}) {
    FourStorages step;
    std::size_t asks = 0;
    const Planner planner = [&](const StepProfile&, const Budget& asked, const Machine&, const Pricer&) {
      ++asks;
      ProposedPlans made{step.plan_of(asked.device > kStorage ? 0 : 1)};
      made.work = 10;
      return made;
    };
    const Duration worth = is_known ? step.profile->step_time() * 100 : kNever;
    const RepairedPlan repaired =
        repaired_plan(planner, *step.profile, {3 * kStorage}, *step.pricer, {}, {.worth = worth, .most_work = 10});
    EXPECT_EQ(asks == 1, is_known);
    EXPECT_EQ(repaired.work, 10 * asks);
  }
}

// In full it is asked for two budgets at once: for what a plan made roughly has kept to, and for more up to the budget.
// The result is the same each time.
TEST(Repair, AsksInFullForSeveralBudgetsSideBySide) {
  std::optional<RepairedPlan> first;
  for (int again = 0; again < 20; ++again) {
    FourStorages step;
    std::mutex mutex;
    std::set<Bytes> in_full;
    const Planner planner = [&](const StepProfile&, const Budget& asked, const Machine&, const Pricer&) {
      const std::lock_guard lock(mutex);
      if (!asked.roughly) in_full.insert(asked.device);
      return ProposedPlans(step.plan_of(asked.device < 2 * kStorage ? 2 : asked.device < 3 * kStorage ? 1 : 0));
    };
    const RepairedPlan repaired =
        repaired_plan(planner, *step.profile, {3 * kStorage}, *step.pricer, {},
                      {.first_asked = 2 * kStorage, .roughly_first = true, .most_in_full = 2, .in_full_at_once = 2});
    EXPECT_EQ(repaired.over, 0);
    EXPECT_EQ(repaired.plan.storages.size(), 1u);
    ASSERT_EQ(in_full.size(), 2u);
    EXPECT_EQ(*in_full.rbegin() - *in_full.begin(), (3 * kStorage - *in_full.begin()) / 2);
    if (!first) first = repaired;
    EXPECT_TRUE(repaired.plan == first->plan);
    EXPECT_EQ(repaired.step_time, first->step_time);
  }
}

TEST(Repair, APlannersMistakeIsASentence) {
  FourStorages step;
  const Planner twice = [&](const StepProfile&, const Budget&, const Machine&, const Pricer&) {
    MemoryPlan plan = step.plan_of(1);
    plan.storages.push_back(plan.storages.front());
    return plan;
  };
  try {
    repaired_plan(twice, *step.profile, {kStorage}, *step.pricer);
    FAIL() << "taken";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("has two decisions"), std::string::npos) << error.what();
  }
}

// Requests of 20 MiB are rounded up to 24 MiB where each power of two is divided into two steps: three of them do not fit then.
TEST(Repair, KeepsToTheBudgetWithTheSettingsOfTheRun) {
  const PlanAllocator rounding{"pytorch", "roundup_power2_divisions:[>:2]"};
  for (const bool rounds : {false, true}) {
    FourStorages step;
    const Planner planner = [&](const StepProfile&, const Budget& asked, const Machine&, const Pricer&) {
      return step.plan_of(static_cast<std::size_t>(4 - std::min<Bytes>(4, asked.device / kStorage)));
    };
    Budget budget{3 * kStorage};
    if (rounds) budget.allocator = rounding;
    const RepairedPlan repaired = repaired_plan(planner, *step.profile, budget, *step.pricer);
    EXPECT_EQ(repaired.over, 0);
    EXPECT_EQ(repaired.plan.storages.size(), rounds ? 2u : 1u);
    EXPECT_LE(repaired.estimate.tiers[0].peak_reserved, budget.device);
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
