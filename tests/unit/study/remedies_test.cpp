// Is what is said to make a step fit what a run with these options gives, and best first?
#include "study/remedies.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/error.h"
#include "study/study.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// A GPT of 24 layers on a GPU of so much memory.
class RemediesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Trace step = gpt_step({.layers = 24, .hidden = 64, .sequence = 64, .batch = 8, .steps = 2});
    step.samples_per_step = 8;
    study_.add_step("step", step);
    const Bytes peak = run(scenario(0)).result.tiers[0].peak_allocated;
    ASSERT_GT(peak, 0);
    needs_ = peak;
  }

  // `capacity` 0: the machine as it is.
  Scenario scenario(Bytes capacity, const std::vector<std::string>& policies = {}) {
    const std::string name = "gpu of " + std::to_string(capacity);
    if (std::find(machines_.begin(), machines_.end(), capacity) == machines_.end()) {
      Machine machine = test_machine();
      machine.name = name;
      if (capacity > 0) machine.tiers[0].capacity = machine.tiers[0].unavailable + capacity;
      study_.add_machine(name, machine);
      machines_.push_back(capacity);
    }
    Scenario s;
    s.step = {"step"};
    s.machine = name;
    s.allocator = "ideal";
    s.policies = policies;
    return s;
  }

  memwall::Run run(const Scenario& s, bool remedies = false) {
    return study_.run(s, {.record = false, .try_remedies = remedies}).run;
  }

  // A row's options, typed.
  static Scenario typed(Scenario s, const std::string& options) {
    const std::string flag = "--policy ";
    for (std::size_t at = options.find(flag); at != std::string::npos;) {
      const std::size_t begin = at + flag.size();
      at = options.find(flag, begin);
      const std::size_t end = at == std::string::npos ? options.size() : at - 1;
      s.policies.push_back(options.substr(begin, end - begin));
    }
    return s;
  }

  Study study_;
  std::vector<Bytes> machines_;
  Bytes needs_ = 0;
};

TEST_F(RemediesTest, EachIsTheRunWithTheseOptions) {
  const Scenario s = scenario(needs_ * 9 / 10);
  const memwall::Run refused = run(s, true);
  ASSERT_FALSE(refused.result.fits);
  ASSERT_GE(refused.tried.size(), 3u);
  for (const TriedChange& change : refused.tried) {
    const memwall::Run alone = run(typed(s, change.options));
    EXPECT_EQ(change.fits, alone.result.fits) << change.options;
    EXPECT_EQ(change.peak_reserved, alone.result.tiers[0].peak_reserved) << change.options;
    EXPECT_EQ(change.step_time, mean_step(alone)) << change.options;
    EXPECT_TRUE(alone.trace->ops.size() != refused.trace->ops.size() || alone.result.end != refused.result.end)
        << change.options << " changes nothing";
  }
}

// What fits the GPU and not the budget that was asked for is no remedy.
TEST_F(RemediesTest, CountWhatIsOverABudgetAsNotFitting) {
  const Scenario s = scenario(needs_ / 2, {"vdnn:budget=1MiB"});
  const memwall::Run refused = run(s, true);
  ASSERT_FALSE(refused.result.fits);
  ASSERT_FALSE(refused.tried.empty());
  bool over = false;
  for (const TriedChange& change : refused.tried) {
    const memwall::Run alone = run(typed(s, change.options));
    EXPECT_EQ(change.fits, alone.result.fits && alone.trace->keeps_to_budgets()) << change.options;
    over = over || (alone.result.fits && !change.fits);
  }
  EXPECT_TRUE(over) << "else the test says nothing";
}

TEST_F(RemediesTest, WhatFitsStandsFirstTheFastestOfThisGpuBeforeAll) {
  const auto elsewhere = [](const TriedChange& c) {
    return c.options.find("zero:") != std::string::npos || c.options.find("batch:") != std::string::npos;
  };
  for (const int percent : {95, 90, 80, 70, 60}) {
    const std::vector<TriedChange> tried = run(scenario(needs_ * percent / 100), true).tried;
    ASSERT_GE(tried.size(), 3u);
    EXPECT_TRUE(tried.front().fits);
    for (std::size_t i = 1; i < tried.size(); ++i) {
      EXPECT_GE(tried[i - 1].fits, tried[i].fits);
      EXPECT_LE(elsewhere(tried[i - 1]), elsewhere(tried[i]));
      if (elsewhere(tried[i - 1]) != elsewhere(tried[i])) continue;
      EXPECT_LE(tried[i - 1].step_time, tried[i].step_time)
          << tried[i - 1].options << " before " << tried[i].options << " within " << percent << " %";
    }
  }
}

// Of what can be done to a part of the step no more is done than needs be.
TEST_F(RemediesTest, TheLeastPartThatFitsIsFound) {
  const Bytes capacity = needs_ * 97 / 100;
  const std::vector<TriedChange> tried = run(scenario(capacity), true).tried;
  const auto fraction_of = [](const TriedChange& change) {
    const std::size_t at = change.options.find("fraction=");
    return at == std::string::npos ? 1.0 : std::stod(change.options.substr(at + 9));
  };
  std::size_t parts = 0;
  for (const TriedChange& change : tried) {
    if (change.options.find("fraction=") == std::string::npos || !change.fits) continue;
    ++parts;
    const double less = fraction_of(change) - 1.0 / 16;
    const std::string policy = change.options.substr(9, change.options.find(",fraction") - 9);
    if (less <= 0) continue;
    EXPECT_FALSE(run(scenario(capacity, {policy + ",fraction=" + std::to_string(less)})).result.fits) << change.options;
  }
  EXPECT_GE(parts, 1u);
}

TEST_F(RemediesTest, WhereNothingFitsTheNearestIsNamedWithWhatItLacks) {
  const std::vector<TriedChange> tried = run(scenario(1 << 16), true).tried;
  ASSERT_EQ(tried.size(), 2u);
  for (const TriedChange& change : tried) {
    EXPECT_FALSE(change.fits);
    EXPECT_EQ(change.missing_in, "hbm");
    EXPECT_GT(change.missing, 0);
  }
  EXPECT_LE(tried[0].missing, tried[1].missing);
}

TEST_F(RemediesTest, WhatTheScenarioHasIsNotTriedAgain) {
  const std::vector<TriedChange> tried = run(scenario(1 << 16, {"checkpoint:mode=full"}), true).tried;
  ASSERT_FALSE(tried.empty());
  for (const TriedChange& change : tried) EXPECT_EQ(change.options.find("checkpoint"), std::string::npos);
}

TEST_F(RemediesTest, NothingIsTriedWhereItFitsOrNobodyAsks) {
  EXPECT_TRUE(run(scenario(0), true).tried.empty());
  EXPECT_TRUE(run(scenario(needs_ / 2)).tried.empty());
}

TEST_F(RemediesTest, PoliciesThatRefuseTheStepAreLeftOut) {
  const Scenario s = scenario(needs_ / 2);
  const memwall::Run refused = run(s);
  EXPECT_TRUE(try_remedies(refused, s, [](const Scenario&) -> memwall::Run { throw UsageError("nothing to move"); })
                  .empty());
}

TEST_F(RemediesTest, UnderAPagerNothingIsTried) {
  Scenario s = scenario(needs_ / 2);
  const memwall::Run refused = run(s);
  s.pager = "lru";
  EXPECT_TRUE(try_remedies(refused, s, [](const Scenario&) -> memwall::Run { throw std::logic_error("not asked"); })
                  .empty());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
