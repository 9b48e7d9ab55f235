// Does a study give what the engine gives, share what scenarios have in common, and depend on nothing else?
#include "study/study.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kSample = std::string(MEMWALL_SOURCE) + "/traces/samples/gpt_124m.mwt";

Scenario sample(std::vector<std::string> policies = {}) {
  Scenario s;
  s.step = {kSample};
  s.policies = std::move(policies);
  return s;
}

class CountingWatch : public Watch {
 public:
  std::shared_ptr<void> reading(const std::filesystem::path&) override {
    ++files;
    return nullptr;
  }
  std::atomic<int> files = 0;
};

void expect_equal(const memwall::Run& a, const memwall::Run& b) {
  EXPECT_EQ(a.result.end, b.result.end);
  EXPECT_EQ(a.result.events, b.result.events);
  ASSERT_EQ(a.result.records.size(), b.result.records.size());
  for (std::size_t i = 0; i < a.result.records.size(); ++i) {
    ASSERT_EQ(a.result.records[i].host_end, b.result.records[i].host_end) << i;
    ASSERT_EQ(a.result.records[i].end, b.result.records[i].end) << i;
  }
  ASSERT_EQ(a.result.tiers.size(), b.result.tiers.size());
  for (std::size_t t = 0; t < a.result.tiers.size(); ++t)
    EXPECT_EQ(a.result.tiers[t].peak_allocated, b.result.tiers[t].peak_allocated) << t;
}

// The reference: the same by hand, with nothing shared.
TEST(Study, GivesWhatTheEngineGives) {
  const Machine machine = test_machine();
  const Trace step = gpt_step({.layers = 3});
  Study study;
  study.add_step("step", step);
  study.add_machine(machine.name, machine);
  for (const std::vector<std::string>& policies :
       {std::vector<std::string>{}, {"checkpoint:mode=full"}, {"zero:stage=2,ranks=4", "offload:what=optimizer,to=host"}}) {
    std::vector<PolicySpec> specs;
    for (const std::string& text : policies) specs.push_back(parse_policy(text));
    const Trace expected = apply_rewriters(step, specs, machine, *make_pricer(machine));
    const SimulationResult result = simulate(expected, machine, {});
    Scenario s;
    s.step = {"step"};
    s.machine = machine.name;
    s.policies = policies;
    EXPECT_TRUE(study.run(s).run.unchanged.empty()) << "nobody looks at it";
    const Outcome outcome = study.run(s, {.compare_to_base = true});
    EXPECT_EQ(outcome.run.trace->ops.size(), expected.ops.size());
    EXPECT_EQ(outcome.run.result.end, result.end);
    EXPECT_EQ(outcome.run.result.events, result.events);
    EXPECT_EQ(outcome.scenario, s);
    EXPECT_EQ(outcome.run.unchanged.empty(), policies.empty()) << "what policies did is told where there are any";
    s.policies.clear();
    EXPECT_EQ(outcome.run.unchanged_step, policies.empty() ? Duration{} : mean_step(study.run(s).run));
  }
}

TEST(Study, ReadsAFileOnceAndSharesItsTrace) {
  CountingWatch watch;
  Study study(&watch);
  const PreparedStep first = study.prepare(sample());
  const PreparedStep second = study.prepare(sample({"checkpoint:mode=full"}));
  const Outcome run = study.run(sample());
  EXPECT_EQ(watch.files, 1);
  EXPECT_TRUE(same(first.trace, first.base)) << "without policies nothing is copied";
  EXPECT_TRUE(same(first.base, second.base));
  EXPECT_TRUE(same(run.run.trace, first.base)) << "nor by running it";
  EXPECT_FALSE(same(second.trace, second.base));
  EXPECT_TRUE(same(study.load(sample()).trace, first.base)) << "on its own machine the step is as it was read";
}

TEST(Study, WhatOverridesAndScalesGaveIsToldAgainstTheSameRunWithoutThem) {
  Study study;
  Scenario plain = sample({"offload:what=optimizer,to=host"});
  plain.machine = "h100-sxm-80gb";
  Scenario changed = plain;
  changed.settings = {"pcie=gen3"};
  changed.scale = {"kernels=2"};
  EXPECT_EQ(study.run(plain, {.compare_to_base = true}).run.changes.step_without.count(), 0);
  EXPECT_EQ(study.run(changed).run.changes.step_without.count(), 0) << "nobody looks at it";
  const memwall::Run run = study.run(changed, {.compare_to_base = true}).run;
  EXPECT_EQ(run.changes.step_without, mean_step(study.run(plain).run));
  EXPECT_GT(mean_step(run), run.changes.step_without);
}

TEST(Study, ADifferentMachineIsAnotherBase) {
  Study study;
  Scenario other = sample();
  other.machine = "h100-sxm-80gb";
  Scenario slower = other;
  slower.settings = {"gpu.hbm.bandwidth=1TB/s"};
  const auto a = study.run(other).run, b = study.run(slower).run;
  EXPECT_FALSE(same(a.trace, b.trace));
  EXPECT_LT(a.result.end, b.result.end);
  EXPECT_EQ(b.machine.links[b.machine.hbm_link].bandwidth, 1e12);
}

TEST(Study, AResultDependsOnItsScenarioAlone) {
  const std::vector<Scenario> scenarios = {sample(), sample({"checkpoint:mode=full"}),
                                           sample({"offload:what=optimizer,to=host"}), sample({"zero:stage=3,ranks=8"})};
  std::vector<memwall::Run> alone;
  for (const Scenario& s : scenarios) alone.push_back(Study().run(s).run);
  Study study;
  for (std::size_t i = scenarios.size(); i-- > 0;) expect_equal(study.run(scenarios[i]).run, alone[i]);
}

// Run under the thread sanitizer too: .ci/long.
TEST(Study, ThreadsRunDifferentScenariosOverOneLoadedStep) {
  const std::vector<Scenario> scenarios = {sample({"checkpoint:mode=full"}), sample({"offload:what=optimizer,to=host"}),
                                           sample(), sample({"zero:stage=1,ranks=4"})};
  std::vector<memwall::Run> expected;
  for (const Scenario& s : scenarios) expected.push_back(Study().run(s).run);
  CountingWatch watch;
  Study study(&watch);
  std::vector<memwall::Run> found(scenarios.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < scenarios.size(); ++i)
    threads.emplace_back([&, i] { found[i] = study.run(scenarios[i]).run; });
  threads.clear();
  EXPECT_EQ(watch.files, 1) << "who asks at once waits for the one who reads";
  for (std::size_t i = 0; i < scenarios.size(); ++i) expect_equal(found[i], expected[i]);
}

TEST(Study, TellsWhatIsWrongBeforeItReads) {
  CountingWatch watch;
  Study study(&watch);
  EXPECT_THROW(study.run(sample({"chekpoint"})), UsageError);
  Scenario s = sample();
  s.machine = "h101";
  EXPECT_THROW(study.run(s), UsageError);
  s = sample();
  s.pager = "lru:clock=never";
  EXPECT_THROW(study.run(s), UsageError);
  s = sample();
  s.allocator = "best";
  EXPECT_THROW(study.run(s), UsageError);
  s = sample();
  s.scale = {"kernel=2"};
  EXPECT_THROW(study.run(s), UsageError);
  EXPECT_THROW(study.run(Scenario{}), UsageError);
  EXPECT_EQ(watch.files, 0);
  s = sample();
  s.step = {"nowhere.mwt"};
  EXPECT_THROW(study.run(s), InputError);
  EXPECT_NO_THROW(study.run(sample())) << "what went wrong is not kept";
}

// torchtitan refuses it without torch.compile.
TEST(Study, RefusesAsyncTensorParallelismThatNobodyCompiles) {
  Study study;
  Scenario s{.step = {"llama3-8b:layers=2,sequence=1024,parallel_framework=torchtitan,tensor=2,sequence_parallel=1,"
                      "async_tensor_parallel=1"},
             .machine = "h100-sxm-80gb"};
  // Others compiled are not enough: one of the layers, one part of each, what stands around them.
  const std::pair<const char*, const char*> missing[] = {{"", "'layers.0.attention"},
                                                         {"compile:modules=layers.0", "'layers.1.attention"},
                                                         {"compile:modules=layers.*.attention", "'layers.0.mlp"},
                                                         {"compile:modules=norm", "'layers.0.attention"}};
  for (const auto& [policy, module] : missing) {
    s.policies.clear();
    if (*policy != '\0') s.policies = {policy};
    try {
      study.run(s, {.record = false});
      ADD_FAILURE() << "it was run with " << policy;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("--policy compile:modules=layers.*"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(module), std::string::npos) << error.what();
    }
  }
  s.policies = {"compile:modules=layers.*", "torchtitan:mode=full"};
  EXPECT_NO_THROW(study.run(s, {.record = false}));
  s.policies = {"compile"};
  EXPECT_NO_THROW(study.run(s, {.record = false}));
  s.policies = {"compile:modules=layers.*"};
  const memwall::Run run = study.run(s, {.record = false}).run;
  EXPECT_TRUE(std::ranges::any_of(run.trace->recipe, [](const RecipeItem& item) {
    return item.setting.find("async_tensor_parallel=true") != std::string::npos;
  }));
}

TEST(Study, ThatGivesUpLoadedStepsFindsTheSame) {
  Scenario other = sample();
  other.settings = {"gpu.hbm.bandwidth=1TB/s"};
  CountingWatch watch;
  Study study(&watch, StudyMemory::base_steps);
  for (const Scenario& s : {sample(), sample({"checkpoint:mode=full"}), other, sample({"zero:stage=2,ranks=4"})})
    expect_equal(study.run(s).run, Study().run(s).run);
  EXPECT_EQ(watch.files, 2) << "once for each base step";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
