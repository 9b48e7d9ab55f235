// Does a plan's file say what comes of it, and is a run that gives something else told apart?
#include "study/plan_outcome.h"

#include <gtest/gtest.h>

#include "sim/error.h"
#include "study/study.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_machine.h"
#include "traces/plan/plan_document.h"
#include "traces/plan/plan_file.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class PlanOutcomeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Trace step = gpt_step({.layers = 4, .hidden = 64, .sequence = 64, .batch = 8});
    step.machine = "gpu";
    study_.add_step("step", step);
    Machine machine = test_machine();
    machine.name = "gpu";
    study_.add_machine("gpu", machine);
    for (Link& link : machine.links)
      if (link.name.starts_with("pcie")) link.bandwidth /= 4;
    machine.name = "slow";
    study_.add_machine("slow", machine);
  }

  Scenario scenario(const std::vector<std::string>& policies) {
    Scenario s;
    s.step = {"step"};
    s.machine = "gpu";
    s.policies = policies;
    return s;
  }

  // Writes the plan of a policy.
  memwall::Run written(const std::string& policy) {
    memwall::Run run = study_.run(scenario({policy}), {}).run;
    write_content(file_, plan_text(study_.plan(scenario({policy})), run));
    return run;
  }

  memwall::Run carried_out(const std::string& machine) {
    Scenario s = scenario({});
    s.plan = file_.string();
    s.machine = machine;
    return study_.run(s, {}).run;
  }

  Study study_;
  ScratchFolder folder_;
  const std::filesystem::path file_ = folder_ / "a.plan";
};

TEST_F(PlanOutcomeTest, ExpectedIsWhatTheRunGave) {
  const memwall::Run run = written("offload:what=activations,to=host,min_bytes=0");
  const PlanDocument document = read_plan_document(file_);
  ASSERT_TRUE(document.expected);
  EXPECT_EQ(document.expected->machine, "gpu");
  EXPECT_EQ(document.expected->allocator, "pytorch");
  EXPECT_EQ(document.expected->step_time, mean_step(run));
  EXPECT_EQ(document.expected->peak_reserved, run.result.tiers[0].peak_reserved);
  EXPECT_EQ(document.expected->peak_requested, run.result.tiers[0].peak_usage.requested);
  EXPECT_EQ(document.expected->recomputed_ops, 0u);
  ASSERT_EQ(document.expected->copies.size(), 2u);
  Bytes sent = 0;
  for (const NamedOffload& offload : document.realization->offload) sent += offload.bytes;
  EXPECT_EQ(document.expected->copies[0].bytes, sent);
  EXPECT_EQ(document.expected->copies[1].bytes, sent);
  EXPECT_EQ(document.expected->copies[0].from, "hbm");
  EXPECT_EQ(document.expected->copies[1].to, "hbm");
}

TEST_F(PlanOutcomeTest, RecomputedOpsAreThoseOfThePlan) {
  written("checkpoint:mode=full");
  const PlanDocument document = read_plan_document(file_);
  std::uint64_t planned = 0;
  for (const PlannedRerun& rerun : document.plan.reruns) planned += rerun.ops.size();
  EXPECT_EQ(document.expected->recomputed_ops, planned);
  EXPECT_GT(document.expected->recompute_time, Duration{});
  EXPECT_TRUE(document.expected->copies.empty());
}

TEST_F(PlanOutcomeTest, NothingIsSaidWhereTheRunGivesWhatIsExpected) {
  for (const char* policy : {"checkpoint:mode=full", "offload:what=activations,to=host,min_bytes=0"}) {
    written(policy);
    EXPECT_EQ(plan_difference(file_, carried_out("gpu")), "") << policy;
  }
}

TEST_F(PlanOutcomeTest, AnotherMachineIsNamedWithWhatDiffers) {
  written("offload:what=activations,to=host,min_bytes=0");
  const memwall::Run slow = carried_out("slow");
  const std::string sentence = plan_difference(file_, slow);
  EXPECT_EQ(sentence.find("plan a.plan: it gives other figures than its file expects on gpu: a step takes "), 0u)
      << sentence;
  EXPECT_NE(sentence.find(" instead of "), std::string::npos);
  EXPECT_EQ(sentence.find("the peak is"), std::string::npos) << "which is the same: " << sentence;
  EXPECT_EQ(sentence.find("from hbm to host"), std::string::npos);
}

TEST_F(PlanOutcomeTest, AFileThatExpectsNothingIsNotHeldAgainstAnything) {
  written("checkpoint:mode=full");
  const PlannedStep planned = study_.plan(scenario({"checkpoint:mode=full"}));
  write_content(file_, to_json(planned.plan, planned.trace, "a program"));
  EXPECT_EQ(plan_difference(file_, carried_out("slow")), "");
}

// A program has to do what policies before the plan decide, too.
TEST_F(PlanOutcomeTest, NamesAreThoseOfAllPolicies) {
  const auto names_of = [&](const std::vector<std::string>& policies) {
    const memwall::Run run = study_.run(scenario(policies), {}).run;
    write_content(file_, plan_text(study_.plan(scenario(policies)), run));
    return *read_plan_document(file_).realization;
  };
  const PlanRealization both =
      names_of({"checkpoint:modules=layers.0+layers.1", "offload:what=activations,to=host,min_bytes=0"});
  ASSERT_EQ(both.recompute.size(), 1u);
  EXPECT_EQ(both.recompute.front().units, (std::vector<std::vector<std::string>>{{"layers.0"}, {"layers.1"}}));
  ASSERT_EQ(both.runs_again.size(), 2u);
  EXPECT_EQ(both.runs_again.front().unit, 1u) << "in the order of backward";
  EXPECT_EQ(both.offload.size(), 1u);
  EXPECT_FALSE(both.optimizer);
  // The last that makes a plan decides, whatever stands behind it.
  const PlanRealization three = names_of({"checkpoint:mode=full", "offload:what=optimizer,to=host"});
  EXPECT_EQ(three.recompute.front().units.size(), 4u);
  ASSERT_TRUE(three.optimizer);
  EXPECT_EQ(three.optimizer->place, "host");
  EXPECT_EQ(three.optimizer->implementation, "cpu_adam");
  EXPECT_FALSE(read_plan_document(file_).plan.storages.empty());
  // Where none makes one, the file is of the step behind all of them and decides nothing.
  const PlanRealization alone = names_of({"offload:what=optimizer,to=host"});
  EXPECT_TRUE(alone.recompute.empty());
  EXPECT_TRUE(alone.optimizer);
  EXPECT_TRUE(read_plan_document(file_).plan.storages.empty());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
