// Is the plan of the largest share found that keeps to the budget, and is each share's plan made once for all budgets?
#include "policies/planners/share_search.h"

#include <gtest/gtest.h>

#include "policies/profile/planned_memory.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Of the activations the share that is kept, in their order; the others leave between their two uses for nothing.
struct Shares {
  Shares() : trace(gpt_step({.layers = 3, .hidden = 256, .heads = 4, .sequence = 128})), profile(trace, machine) {
    for (const Gap& gap : profile.gaps())
      if (gap.needs_content && !gap.wraps && !trace.storages[gap.storage].preexisting) gaps.push_back(gap);
  }

  MemoryPlan plan(double share) {
    ++made;
    MemoryPlan plan;
    for (std::size_t i = static_cast<std::size_t>(share * static_cast<double>(gaps.size())); i < gaps.size(); ++i) {
      if (!plan.storages.empty() && plan.storages.back().storage == gaps[i].storage) continue;
      StorageDecision d;
      d.storage = gaps[i].storage;
      d.drops.push_back({{gaps[i].after, true, 0}});
      plan.storages.push_back(std::move(d));
    }
    return plan;
  }

  MemoryPlan found(Bytes budget, const std::string& settings = "a") {
    return plan_of_largest_share(profile, {budget}, settings, [&](double share) { return plan(share); });
  }

  // Tries all shares anew.
  MemoryPlan by_hand(Bytes budget) {
    MemoryPlan best;
    Bytes least = PlannedMemory(profile).peak();
    for (int step = 20; step >= 0; --step) {
      MemoryPlan one = plan(step / 20.0);
      const Bytes peak = planned_peak(profile, one);
      if (peak <= budget) return one;
      if (peak < least) least = peak, best = std::move(one);
    }
    return best;
  }

  const Machine machine = test_machine();
  const Trace trace;
  const StepProfile profile;
  std::vector<Gap> gaps;
  int made = 0;
};

TEST(ShareSearch, FindsWhatTryingAllSharesFindsForEachBudget) {
  Shares shares;
  const Bytes peak = PlannedMemory(shares.profile).peak();
  int different = 0;
  MemoryPlan last;
  for (const int percent : {120, 90, 95, 70, 50, 90, 20, 1}) {
    const MemoryPlan found = shares.found(peak / 100 * percent);
    EXPECT_EQ(found, shares.by_hand(peak / 100 * percent)) << percent;
    different += found == last ? 0 : 1;
    last = found;
  }
  EXPECT_GE(different, 4);
}

TEST(ShareSearch, MakesThePlanOfAShareOnceForEachOfItsSettings) {
  Shares shares;
  const Bytes peak = PlannedMemory(shares.profile).peak();
  shares.found(peak / 2);
  const int first = shares.made;
  EXPECT_GT(first, 1);
  shares.found(peak / 2);
  shares.found(peak / 4 * 3);
  EXPECT_EQ(shares.made, first);
  shares.found(1);
  EXPECT_EQ(shares.made, 21);
  shares.found(1, "b");
  EXPECT_EQ(shares.made, 42);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
