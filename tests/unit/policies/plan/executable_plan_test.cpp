// Does what is left of a plan for PyTorch stand where hooks run, without what has no name, and is it refused where that
// is nothing? Steps written by hand; kernels of 1 us.
#include "policies/plan/executable_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "policies/plan/plan_check.h"
#include "policies/plan/plan_realization.h"
#include "policies/planners/repair.h"
#include "study/executable.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/step_program.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// A chain of linear layers in modules "0", "1", ..., each of which saves its input of `bytes`.
struct LinearChain {
  Trace trace;
  std::vector<StorageId> x;
  std::vector<OpId> linear, product;
  explicit LinearChain(const std::vector<Bytes>& bytes) {
    StepProgram p;
    const StorageId w = p.preexisting(4096, StorageKind::parameter, "w.weight");
    x.push_back(p.make(bytes[0], "x0"));
    p.op("load", {}, {x.back()});
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      p.module("layers." + std::to_string(i));
      const StorageId out = p.make(i + 1 < bytes.size() ? bytes[i + 1] : 100, "x" + std::to_string(i + 1));
      linear.push_back(p.op("linear", {x.back(), w}, {out}));
      p.saves({x.back(), w});
      x.push_back(out);
    }
    p.drop(x.back());
    x.pop_back();
    p.backward();
    product.resize(x.size());
    for (std::size_t i = x.size(); i-- > 0;) {
      p.module("layers." + std::to_string(i));
      const StorageId grad = p.make(10, "grad", StorageKind::workspace);
      product[i] = p.op("mm", {x[i], w}, {grad});
      p.drop(grad);
      p.drop(x[i]);
    }
    trace = std::move(p).finish();
  }
};

MemoryPlan moving(std::vector<StorageDecision> decisions) {
  MemoryPlan plan;
  plan.tiers.push_back({"host", "", true, true, 2, TierClass::host});
  plan.storages = std::move(decisions);
  return plan;
}

StorageDecision sent_at(StorageId storage, PlanPoint copied, PlanPoint dropped, PlanPoint fetched) {
  StorageDecision d;
  d.storage = storage;
  d.copies.push_back({copied, 0});
  d.drops.push_back({dropped});
  d.fetches.push_back({fetched, 0});
  return d;
}

RestrictedPlan restricted_to_torch(const MemoryPlan& plan, const Trace& trace) {
  const Dataflow flow(trace);
  EXPECT_EQ(check_plan(plan, trace, flow), std::vector<std::string>{});
  return executable_plan(plan, trace, flow);
}

TEST(ExecutablePlan, CopiesWhenItIsSavedDropsLaterAndFetchesEarlier) {
  const LinearChain step({4000, 4000, 100, 4000, 4000});
  const auto& [trace, x, linear, product] = step;
  // Behind its use; then behind the saves of the third, which is too small to be counted; for the node of the fourth.
  MemoryPlan plan = moving({sent_at(x[0], {linear[0], true}, {linear[1], true}, {product[2], false})});
  RestrictedPlan found = restricted_to_torch(plan, trace);
  ASSERT_EQ(found.refusal, "");
  const StorageDecision& d = found.plan.storages.front();
  EXPECT_EQ(d.copies.front().at, (PlanPoint{linear[0], false}));
  EXPECT_EQ(d.drops.front().at, (PlanPoint{linear[3] - 1, false})) << "before its result is allocated";
  EXPECT_EQ(d.fetches.front().at, (PlanPoint{product[3], false}));
  EXPECT_EQ(found.note, "Copies of 1 storage are moved to where hooks run.");
  // Behind the last save: at the end of forward; before any node: as backward begins.
  plan = moving({sent_at(x[3], {linear[3], true}, {linear[4], true}, {product[4] - 1, false})});
  found = restricted_to_torch(plan, trace);
  ASSERT_EQ(found.refusal, "");
  EXPECT_EQ(found.plan.storages.front().drops.front().at, (PlanPoint{linear[4], true}));
  const PlanRealization names = realization_of(found.plan, trace, Dataflow(trace));
  EXPECT_EQ(names.offload.front().moves.front().give_back, HookMove::kEnd);
  EXPECT_EQ(names.offload.front().moves.front().fetch, HookMove::kEnd);
  // What is restricted stays as it is.
  const RestrictedPlan again = restricted_to_torch(found.plan, trace);
  EXPECT_EQ(again.plan, found.plan);
  EXPECT_EQ(again.note, "");
}

// Two that come back for one node do so in the order of the plan, and before what is run again there.
TEST(ExecutablePlan, KeepsTheOrderOfFetches) {
  const LinearChain step({4000, 4000, 4000, 4000});
  const auto& [trace, x, linear, product] = step;
  StorageDecision again;
  again.storage = x[2];
  again.drops.push_back({{linear[2], true}});
  MemoryPlan plan = moving({sent_at(x[0], {linear[0], true}, {linear[0], true, 1}, {product[2] - 1, false, 1}),
                            sent_at(x[1], {linear[1], true}, {linear[1], true, 1}, {product[2] - 1, false}), again});
  plan.reruns.push_back({{product[2], false}, {linear[1]}});
  const RestrictedPlan found = restricted_to_torch(plan, trace);
  ASSERT_EQ(found.refusal, "");
  const PlanPoint first = found.plan.storages[1].fetches.front().at, second = found.plan.storages[0].fetches.front().at;
  EXPECT_LT(first, second);
  EXPECT_FALSE(found.plan.reruns.front().at < first);
  const PlanRealization names = realization_of(found.plan, trace, Dataflow(trace));
  EXPECT_EQ(names.offload.front().fetch_order, (std::vector<std::uint64_t>{1, 0}));
}

TEST(ExecutablePlan, LeavesOutWhatHooksDoNotCarryOut) {
  const LinearChain step({4000, 2000, 4000});
  const auto& [trace, x, linear, product] = step;
  StorageDecision twice = sent_at(x[1], {linear[1], true}, {linear[1], true, 1}, {product[2], false});
  twice.drops.push_back({{product[2], true}});
  twice.fetches.push_back({{product[1], false}, 0});
  const StorageDecision once = sent_at(x[0], {linear[0], false}, {linear[0], true}, {product[0], false});
  const RestrictedPlan found = restricted_to_torch(moving({twice, once}), trace);
  ASSERT_EQ(found.refusal, "");
  EXPECT_EQ(found.plan.storages, std::vector<StorageDecision>{once});
  EXPECT_EQ(found.note, "Left out: 1 storage (2.000 kB), hooks do not see them, or they travel more than once.");
  const RestrictedPlan none = restricted_to_torch(moving({twice}), trace);
  EXPECT_EQ(none.plan, MemoryPlan{});
  EXPECT_EQ(
      none.refusal,
      "Nothing of the plan is left that PyTorch can execute: 1 storage (2.000 kB), hooks do not see them, or they "
      "travel more than once.");
}

TEST(ExecutablePlan, NeedsNamesAndWhatAutogradSaves) {
  LinearChain step({4000, 4000});
  const MemoryPlan plan =
      moving({sent_at(step.x[0], {step.linear[0], false}, {step.linear[0], true}, {step.product[0], false})});
  EXPECT_EQ(restricted_to_torch(plan, step.trace).refusal, "");
  Trace silent = step.trace;
  for (Use& use : silent.uses) use.saved = false;
  EXPECT_NE(restricted_to_torch(plan, silent).refusal.find("does not say what autograd saves"), std::string::npos);
  Trace nameless = step.trace;
  nameless.knowledge.modules = false;
  EXPECT_NE(restricted_to_torch(plan, nameless).refusal.find("does not know modules"), std::string::npos);
  EXPECT_EQ(restricted_to_torch({}, silent).refusal, "") << "an empty plan needs nothing";
}

// Of batch normalization the counter is not run again: it is no work of the unit's results.
TEST(ExecutablePlan, CountsBatchesOnce) {
  StepProgram p;
  const StorageId count = p.preexisting(8, StorageKind::parameter, "norm.num_batches_tracked");
  const StorageId x = p.make(4000, "x"), h = p.make(4000, "h"), y = p.make(4000, "y");
  p.op("load", {}, {x});
  p.module("norm");
  const OpId counter = p.op("add_", {count}, {count});
  const OpId norm = p.op("native_batch_norm", {x}, {h});
  const OpId relu = p.op("relu", {h}, {y});
  p.saves({h});
  p.module("");
  p.op("loss", {y}, {});
  p.drop(y);
  p.backward();
  p.module("norm");
  const StorageId grad = p.make(10, "grad", StorageKind::workspace);
  const OpId back = p.op("threshold_backward", {h}, {grad});
  for (const StorageId s : {grad, h, x}) p.drop(s);
  const Trace trace = std::move(p).finish();
  StorageDecision again;
  again.storage = h;
  again.drops.push_back({{relu, true}});
  MemoryPlan plan;
  plan.storages.push_back(again);
  plan.reruns.push_back({{back, false}, {counter, norm}});
  plan.keeps.push_back({x, {back, true}});
  const RestrictedPlan found = restricted_to_torch(plan, trace);
  ASSERT_EQ(found.refusal, "");
  EXPECT_EQ(found.plan.reruns.front().ops, std::vector<OpId>{norm});
  EXPECT_EQ(found.note, "Not run again, since they count batches: 1 op.");
}

// A planner is asked again until what is left of its plan keeps to the budget.
TEST(ExecutablePlan, ABudgetIsForWhatIsLeft) {
  const LinearChain step({MiB(64), MiB(64), MiB(64), MiB(64), MiB(64), MiB(64)});
  const Machine machine = test_machine();
  const StepProfile profile(step.trace, machine);
  // Sends the first inputs, as many as the budget asks for; of these the very first in a way that hooks do not know.
  const Planner planner = [&](const StepProfile&, const Budget& budget, const Machine&, const Pricer&) {
    std::vector<StorageDecision> sent;
    const auto wanted = static_cast<std::size_t>(std::max<Bytes>(0, MiB(64) * 6 - budget.device) / MiB(64));
    for (std::size_t i = 0; i < std::min<std::size_t>(wanted, 4); ++i)
      sent.push_back(sent_at(step.x[i], {step.linear[i], false}, {step.linear[i], true}, {step.product[i], false}));
    if (!sent.empty()) {
      sent.front().drops.push_back({{step.product[1], false}});
      sent.front().fetches.insert(sent.front().fetches.begin(), {{step.product[5], false}, 0});
    }
    return moving(std::move(sent));
  };
  const auto pricer = test_pricer(machine);
  const Budget budget{MiB(64) * 5};
  const RepairedPlan free = repaired_plan(planner, profile, budget, *pricer);
  const RepairedPlan held = repaired_plan(planner, profile, budget, *pricer, restriction_of("torch"));
  EXPECT_EQ(free.over, 0);
  EXPECT_EQ(held.over, 0);
  EXPECT_NE(held.restricted.find("Left out: 1 storage"), std::string::npos) << held.restricted;
  EXPECT_FALSE(held.plan.storages.empty());
  for (const StorageDecision& d : held.plan.storages) EXPECT_NE(d.storage, step.x[0]);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
