// Does a plan from a file give what the policy gave that made it, and is one that cannot be carried out refused?
#include "study/planned_trace.h"

#include <gtest/gtest.h>

#include "sim/error.h"
#include "sim/trace/ranks.h"
#include "study/study.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/same_program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_machine.h"
#include "traces/plan/plan_file.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class PlannedTraceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Trace step = gpt_step({.layers = 4, .hidden = 64, .sequence = 64, .batch = 8});
    step.machine = "gpu";
    study_.add_step("step", step);
    Machine machine = test_machine();
    machine.name = "gpu";
    study_.add_machine("gpu", machine);
  }

  Scenario scenario(const std::vector<std::string>& policies, const std::string& plan = "") {
    Scenario s;
    s.step = {"step"};
    s.machine = "gpu";
    s.policies = policies;
    s.plan = plan;
    return s;
  }

  std::string file_of(const Scenario& s) {
    const PlannedStep planned = study_.plan(s);
    const auto file = folder_ / "a.plan";
    write_content(file, to_json(planned.plan, planned.trace, planned.made_by));
    return file.string();
  }

  Study study_;
  ScratchFolder folder_;
};

TEST_F(PlannedTraceTest, IsTheStepOfThePolicyThatMadeThePlan) {
  const std::vector<std::string> sharded = {"zero:stage=1,ranks=2"};
  for (const std::string policy : {"checkpoint:mode=full", "offload:what=activations,to=host,min_bytes=0"}) {
    const memwall::Run by_policy = study_.run(scenario({policy}), {}).run;
    const memwall::Run by_plan = study_.run(scenario({}, file_of(scenario({policy}))), {}).run;
    EXPECT_EQ(by_plan.trace->ops.size(), by_policy.trace->ops.size());
    EXPECT_EQ(by_plan.result.end, by_policy.result.end) << policy;
    EXPECT_EQ(by_plan.result.tiers[0].peak_reserved, by_policy.result.tiers[0].peak_reserved);
    EXPECT_EQ(by_plan.policies, std::vector<std::string>{"plan a.plan"});
  }
  // Behind other policies the plan is for what these have made of the step.
  const std::string offload = "offload:what=activations,to=host,min_bytes=0";
  const std::string file = file_of(scenario({sharded[0], offload}));
  EXPECT_EQ(study_.run(scenario(sharded, file), {}).run.result.end,
            study_.run(scenario({sharded[0], offload}), {}).run.result.end);
  EXPECT_THROW(study_.run(scenario({}, file), {}), InputError);
}

// A planner whose budget is all that the device has, on a GPU with less memory.
TEST_F(PlannedTraceTest, IsForTheBudgetThatTheScenarioGivesTheGpu) {
  Scenario s = scenario({"plan:search=0"});
  EXPECT_TRUE(study_.plan(s).plan.storages.empty()) << "it fits";
  const memwall::Run whole = study_.run(scenario({}), {}).run;
  s.budget = std::to_string(whole.result.tiers[0].peak_reserved * 3 / 5) + "B";
  const memwall::Run by_policy = study_.run(s, {}).run;
  Scenario by_file = scenario({}, file_of(s));
  by_file.budget = s.budget;
  const memwall::Run by_plan = study_.run(by_file, {}).run;
  EXPECT_GT(by_policy.trace->ops.size(), whole.trace->ops.size());
  EXPECT_EQ(by_plan.trace->ops.size(), by_policy.trace->ops.size());
  EXPECT_EQ(by_plan.result.end, by_policy.result.end);
}

TEST_F(PlannedTraceTest, APlanThatCannotBeCarriedOutIsRefusedWithTheReason) {
  PlannedStep planned = study_.plan(scenario({"offload:what=activations,to=host,min_bytes=0"}));
  planned.plan.storages.front().fetches.clear();
  write_content(folder_ / "b.plan", to_json(planned.plan, planned.trace, "a fault"));
  try {
    study_.run(scenario({}, (folder_ / "b.plan").string()), {});
    FAIL() << "taken";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("b.plan: the plan cannot be carried out. "), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("which the plan has dropped."), std::string::npos) << error.what();
  }
}

// Of two ranks with the same program, of which one's kernels are slower, each is changed as it is alone.
TEST_F(PlannedTraceTest, EachRankOfATraceOfSeveralIsChangedAlike) {
  const Trace step = study_.load(scenario({})).trace;
  Trace slower = step;
  for (Op& op : slower.ops)
    if (op.kind == OpKind::kernel) op.duration *= 2;
  Trace other = step;
  other.storages.front().bytes *= 2;
  study_.add_step("slower", slower);
  study_.add_step("two ranks", joined_ranks({{0, step}, {3, slower}}));
  study_.add_step("two programs", joined_ranks({{0, step}, {3, other}}));
  for (const std::string policy : {"checkpoint:mode=full", "offload:what=activations,to=host,min_bytes=0"}) {
    const std::string file = file_of(scenario({policy}));
    const auto planned = [&](const char* name) {
      Scenario s = scenario({}, file);
      s.step = {name};
      return Trace(study_.prepare(s).trace);
    };
    const Trace ranks = planned("two ranks");
    EXPECT_EQ(program_difference(one_rank(ranks, 0), planned("step")), "");
    EXPECT_EQ(program_difference(one_rank(ranks, 1), planned("slower")), "");
    try {
      planned("two programs");
      FAIL() << "taken";
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()).find("Rank 3 of "), 0u) << error.what();
      EXPECT_NE(std::string(error.what()).find("another program"), std::string::npos) << error.what();
    }
  }
}

// What sentences say that refuse to make one plan for several ranks.
TEST_F(PlannedTraceTest, APolicyThatPlansPlansEachRankByItself) {
  const Trace step = study_.load(scenario({})).trace;
  Trace smaller = gpt_step({.layers = 3, .hidden = 64, .sequence = 64, .batch = 8});
  smaller.machine = step.machine;
  smaller.name = step.name;
  study_.add_step("smaller", smaller);
  study_.add_step("two ranks", joined_ranks({{0, step}, {3, smaller}}));
  const Bytes peak = study_.run(scenario({}), {}).run.result.tiers[0].peak_allocated;
  const auto under = [&](const char* name, const std::string& policy) {
    Scenario s = scenario({policy});
    s.step = {name};
    return Trace(study_.prepare(s).trace);
  };
  const std::string policy = "plan:budget=" + std::to_string(peak * 7 / 10) + "B";
  const Trace ranks = under("two ranks", policy);
  EXPECT_EQ(program_difference(one_rank(ranks, 0), under("step", policy)), "");
  EXPECT_EQ(program_difference(one_rank(ranks, 1), under("smaller", policy)), "");
  EXPECT_NE(ranks.ops.size(), step.ops.size() + smaller.ops.size()) << "something was planned";
  Scenario s = scenario({"capuchin:budget=1GB"});
  s.step = {"two ranks"};
  try {
    study_.plan(s);
    FAIL() << "one plan for two ranks";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("plans each rank by itself"), std::string::npos) << error.what();
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
