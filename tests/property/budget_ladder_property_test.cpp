// Is no larger budget of a comparison slower than a smaller one, whatever luck the allocator's pieces bring? On random
// steps and random ladders of budgets: of three in every run of the tests, of five in long ones
// (tests/support/long_run.h).
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "study/policy_comparison.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/long_run.h"
#include "tests/support/random_step.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Storages are of 1 to 20 MB, so that the allocator's segments of 2 MiB tell one budget from another.
Trace step_of_ladder() {
  constexpr int kTimes = 10'000;
  if (*rc::gen::inRange(0, 8) == 0)
    return gpt_step({.layers = *rc::gen::inRange(2, 6), .hidden = 256, .heads = 4, .sequence = 512, .batch = 8});
  Trace step = random_step(1);
  for (Storage& storage : step.storages) storage.bytes *= kTimes;
  for (Op& op : step.ops) op.duration *= kTimes;
  return step;
}

RC_GTEST_PROP(BudgetLadder, NoLargerBudgetOfAComparisonIsSlower, ()) {
  Study study;
  study.add_step("step", step_of_ladder());
  study.add_machine("gpu", test_machine());
  PolicyQuestion question;
  question.scenario.step = {"step"};
  question.scenario.machine = "gpu";
  question.policies = {*rc::gen::element<std::string>("plan:search=0", "plan:recompute=0,search=0")};
  int share = *rc::gen::inRange(30, 60);
  for (std::size_t i = 0; i < cases(3, 5); ++i, share += *rc::gen::inRange(1, 12))
    question.budgets.push_back(std::to_string(share) + "%");
  const PolicyComparison c = compare_policies(study, question);
  const std::size_t plan = c.policies.size() - 1;
  RC_ASSERT(c.policies[plan] == question.policies.front());
  int fit = 0, for_less = 0, held = 0;
  for (std::size_t b = c.budgets.size(); b-- > 1;) {
    const PolicyCell &less = c.cell(b, plan), &more = c.cell(b - 1, plan);
    RC_LOG() << c.budgets[b].given << " " << less.fits << " " << less.step_time.count() << " for " << less.planned_for
             << ", " << c.budgets[b - 1].given << " " << more.fits << " " << more.step_time.count() << " for "
             << more.planned_for << '\n';
    fit += less.fits ? 1 : 0;
    for_less += more.planned_for > 0 ? 1 : 0;
    held += more.held_to > 0 ? 1 : 0;
    if (less.fits) RC_ASSERT(more.fits && more.step_time <= less.step_time);
  }
  RC_CLASSIFY(fit > 1, "several fit");
  RC_CLASSIFY(for_less > 0, "a plan for less is taken");
  RC_CLASSIFY(held > 0, "the process is limited to less");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
