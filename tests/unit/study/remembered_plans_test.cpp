// Is a plan that takes long made once for each scenario, whatever it is asked for, and is what is remembered what a
// study that has just begun makes?
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "study/study.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/sample.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_machine.h"
#include "traces/plan/plan_file.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class RememberedPlans : public ::testing::Test {
 protected:
  void SetUp() override { begin(study_); }

  void begin(Study& study) const {
    study.add_step("step", step_);
    study.add_machine("gpu", test_machine());
  }

  static Scenario scenario(const std::vector<std::string>& policies) {
    Scenario s;
    s.step = {"step"};
    s.machine = "gpu";
    s.policies = policies;
    return s;
  }

  // A planner that notes each time that it is asked, for a budget that no plan keeps to.
  std::string counting_planner() {
    const Machine machine = test_machine();
    const std::string offload = "offload:what=activations,to=host,min_bytes=0";
    const MemoryPlan plan = plan_rewriters(step_, {parse_policy(offload)}, machine, *test_pricer(machine)).plan;
    write_content(folder_ / "a.plan", to_json(plan, step_, "a test"));
    const std::filesystem::path script = folder_ / "planner.sh";
    write_content(script, "#!/bin/sh\necho asked >> '" + (folder_ / "asked").string() + "'\ncat '" +
                              (folder_ / "a.plan").string() + "'\n");
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    return "exec:" + script.string() + ",budget=1MiB";
  }

  std::ptrdiff_t asked() const {
    const std::string lines = content_of(folder_ / "asked");
    return std::ranges::count(lines, '\n');
  }

  // What a study that knows the plan already gives is what another one makes.
  void expect_alike(const std::vector<std::string>& policies) {
    SCOPED_TRACE(policies.front());
    const Scenario s = scenario(policies);
    const PlannedStep planned = study_.plan(s);
    const memwall::Run remembered = study_.run(s, {.record = false}).run;
    Study other;
    begin(other);
    const memwall::Run made = other.run(s, {.record = false}).run;
    EXPECT_EQ(remembered.trace->notes, made.trace->notes);
    EXPECT_EQ(remembered.trace->budgets, made.trace->budgets);
    EXPECT_EQ(mean_step(remembered), mean_step(made));
    EXPECT_TRUE(other.plan(s).plan == planned.plan);
  }

  const Trace step_ = gpt_step({.layers = 3, .hidden = 64, .sequence = 64, .batch = 8});
  ScratchFolder folder_;
  Study study_;
};

TEST_F(RememberedPlans, APlannerIsAskedOnceForAllThatFollowsFromItsPlan) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  std::map<std::string, std::shared_ptr<const MadePlan>> known;
  const PlanCache cache = [&](const std::string& key, const std::function<MadePlan()>& make) {
    std::shared_ptr<const MadePlan>& plan = known[key];
    if (!plan) plan = std::make_shared<const MadePlan>(make());
    return plan;
  };
  const auto specs = [](const std::vector<std::string>& policies) {
    std::vector<PolicySpec> all;
    for (const std::string& policy : policies) all.push_back(parse_policy(policy));
    return all;
  };
  const auto run = [&](const std::vector<std::string>& policies) {
    apply_rewriters(step_, specs(policies), machine, *pricer, {}, {}, cache);
  };
  run({"capuchin:budget=3MiB"});
  EXPECT_EQ(known.size(), 1u);
  plan_rewriters(step_, specs({"capuchin:budget=3MiB"}), machine, *pricer, {}, {}, cache);
  run({"capuchin:budget=3MiB"});
  EXPECT_EQ(known.size(), 1u);
  run({"capuchin:budget=2MiB"});
  EXPECT_EQ(known.size(), 2u) << "a plan follows from the budget";
  run({"offload:what=optimizer,to=host", "capuchin:budget=3MiB"});
  EXPECT_EQ(known.size(), 3u) << "and from what is done to the step before";
}

// Its code may be another by now.
TEST_F(RememberedPlans, AProgramOfTheUsersIsAskedEachTime) {
  const Scenario s = scenario({counting_planner()});
  study_.run(s, {.record = false});
  const std::ptrdiff_t once = asked();
  EXPECT_GT(once, 0);
  study_.run(s, {.record = false, .device_bytes = MiB(64)});
  EXPECT_EQ(asked(), 2 * once);
}

TEST_F(RememberedPlans, AreWhatAnotherStudyMakes) {
  expect_alike({"plan:search=0,budget=3MiB"});
  expect_alike({"plan:search=0,budget=1MiB"});  // which nothing keeps to
  expect_alike({"capuchin:budget=3MiB"});
  expect_alike({"plan:search=0,budget=3MiB", "checkpoint:mode=full"});
  expect_alike({"plan:search=0,budget=3MiB", "offload:what=optimizer,to=host"});
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
