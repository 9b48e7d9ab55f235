// Does an explanation say what separate runs say, the same for any number of threads and from a journal?
#include "study/explain/explanation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/error.h"
#include "tests/support/scratch_folder.h"
#include "traces/run/analysis/summary.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class ExplanationTest : public testing::Test {
 protected:
  ExplanationRequest request(std::vector<std::string> only) const {
    ExplanationRequest r{.scenario = scenario_, .only = std::move(only), .regret = false};
    return r;
  }
  double step(const Scenario& scenario) { return to_seconds(mean_step(study_.run(scenario, {.record = false}).run)); }

  Study study_;
  Scenario scenario_{.step = {"gpt2-124m:layers=4,width=256,heads=4,sequence=256,batch=8"}, .machine = "a100-sxm-40gb"};
};

TEST_F(ExplanationTest, NumbersThatChangeNothingAreNamedAndTheOthersListed) {
  const Explanation e =
      explain(study_, request({"gpu.hbm.bandwidth", "gpu.peak.fp64.rate", "gpu.load_latency"}), nullptr);
  ASSERT_EQ(e.sensitivities.size(), 1u);
  EXPECT_EQ(e.sensitivities[0].number.name, "gpu.hbm.bandwidth");
  EXPECT_EQ(e.idle, std::vector<std::string>{"gpu.peak.fp64.rate"});
  EXPECT_EQ(e.fixed, std::vector<std::string>{"gpu.load_latency"}) << "a curve";
  EXPECT_DOUBLE_EQ(e.here.step_time, step(scenario_));
}

TEST_F(ExplanationTest, TheCriticalPathIsTheRunsOwn) {
  const Explanation e = explain(study_, request({"gpu.hbm.bandwidth"}), nullptr);
  const RunSummary summary = summarize(study_.run(scenario_).run);
  ASSERT_FALSE(e.path.empty());
  for (const auto& [reason, time] : e.path) EXPECT_EQ(time, summary.path[reason]) << to_string(reason);
  EXPECT_TRUE(std::ranges::is_sorted(e.path, std::greater{}, &std::pair<TimeClass, Duration>::second));
}

// Up to there more helps, and from there on it does not, by what separate runs say.
TEST_F(ExplanationTest, WhatBindsNextIsWhereSeparateRunsSaySo) {
  scenario_.step = {"gpt2-124m:layers=2"};  // long kernels, until the host is the longest
  const Explanation e = explain(study_, request({"scale.kernels"}), nullptr);
  ASSERT_EQ(e.next.size(), 1u);
  const NextBound& next = e.next[0];
  EXPECT_FALSE(next.more);
  EXPECT_GT(next.elasticity, 0);
  ASSERT_EQ(next.stop, StopReason::other_reason);
  const auto reason = [&](double scale) {
    Scenario s = scenario_;
    s.scale = {typed_value(next.number, scale).insert(0, "kernels=")};
    const RunSummary summary = summarize(study_.run(s).run);
    const auto& times = summary.path.by_class;
    return std::string(to_string(static_cast<TimeClass>(std::ranges::max_element(times) - times.begin())));
  };
  EXPECT_EQ(reason(next.value), next.reason_then);
  EXPECT_EQ(reason(1), next.reason_now);
  EXPECT_NE(next.reason_now, next.reason_then);
  EXPECT_EQ(reason(next.value * kFound), next.reason_now) << "just before it still helps";
}

TEST_F(ExplanationTest, LittleIsLeftWhereTheElasticityIsATwentieth) {
  const Explanation e = explain(study_, request({"gpu.hbm.bandwidth"}), nullptr);
  ASSERT_EQ(e.next.size(), 1u);
  const NextBound& next = e.next[0];
  EXPECT_TRUE(next.more);
  ASSERT_EQ(next.stop, StopReason::little_left);
  const auto slope = [&](double value) {
    const auto at = [&](double v) {
      Scenario s = scenario_;
      s.settings = {"gpu.hbm.bandwidth=" + typed_value(next.number, v)};
      return step(s);
    };
    return std::log(at(value * 1.05) / at(value)) / std::log(1.05);
  };
  EXPECT_NEAR(slope(next.number.value), next.elasticity, 1e-9);
  EXPECT_GE(slope(next.value), kLittleLeft * next.elasticity);
  EXPECT_LT(slope(next.value / kFound), kLittleLeft * next.elasticity) << "just before, more is left";
}

// From there on, and not before, separate runs say that the other number counts for more.
TEST_F(ExplanationTest, ANumberIsOvertakenWhereAnotherCountsForMore) {
  scenario_ = {.step = {"llama3.2-1b:layers=2"}, .machine = "h100-sxm-80gb"};
  const Explanation e = explain(study_, request({"gpu.hbm.bandwidth", "gpu.peak.bf16.rate"}), nullptr);
  ASSERT_EQ(e.next.size(), 1u);
  const NextBound& next = e.next[0];
  ASSERT_TRUE(next.overtaken_at);
  const auto rival =
      std::ranges::find(e.sensitivities, next.overtaken_by, [](const Sensitivity& s) { return s.number.name; });
  ASSERT_NE(rival, e.sensitivities.end());
  EXPECT_NE(next.overtaken_by, next.number.name);
  const auto gains = [&](double value) {
    const Scenario here = with_value(scenario_, next.number, value);
    const double own = step(here) / step(with_value(scenario_, next.number, value * 1.05));
    return std::pair(own, step(here) / step(with_value(here, rival->number, rival->number.value * 1.05)));
  };
  const auto there = gains(*next.overtaken_at), before = gains(*next.overtaken_at / kFound);
  EXPECT_GT(there.second, there.first);
  EXPECT_GE(before.first, before.second);
}

// Fewer multiprocessors with the same peak rate make this step shorter in the model; nobody can buy that.
TEST_F(ExplanationTest, CountsAreVariedButNotSoughtFurther) {
  scenario_ = {.step = {"gpt2-124m:layers=2"}, .machine = "h100-sxm-80gb"};
  const Explanation e = explain(study_, request({"gpu.multiprocessors"}), nullptr);
  EXPECT_EQ(e.sensitivities.size() + e.idle.size(), 1u);
  EXPECT_TRUE(e.next.empty());
}

TEST_F(ExplanationTest, AShadowPriceIsSecondsForAUnitMore) {
  Explanation e = explain(study_, request({"gpu.hbm.bandwidth", "gpu.hbm.capacity"}), nullptr);
  ASSERT_EQ(e.prices.size(), 2u);
  EXPECT_EQ(e.prices[0].resource.number.name, "gpu.hbm.capacity");
  EXPECT_TRUE(e.prices[0].is_zero()) << "it fits";
  const ShadowPrice& bandwidth = e.prices[1];
  Scenario less = scenario_, more = scenario_;
  less.settings = {"gpu.hbm.bandwidth=1477.25GB/s"};
  more.settings = {"gpu.hbm.bandwidth=1632.75GB/s"};
  EXPECT_NEAR(*bandwidth.seconds, (step(less) - step(more)) / 155.5, 1e-12);
  EXPECT_NEAR(*bandwidth.below, (step(less) - step(scenario_)) / 77.75, 1e-12);
  EXPECT_NEAR(*bandwidth.dollars, *bandwidth.seconds * 1.844 / 3600, 1e-15) << "of one GPU at 1.844 $/h";
}

// A budget that offload has to keep to is worth something.
TEST_F(ExplanationTest, ABudgetThatAPlanHeedsHasAPrice) {
  scenario_.policies = {"plan:budget=60%"};
  const Explanation e = explain(study_, request({"plan.budget"}), nullptr);
  ASSERT_EQ(e.prices.size(), 1u);
  EXPECT_EQ(e.prices[0].resource.number.name, "plan.budget");
  EXPECT_EQ(e.prices[0].resource.unit, "GB");
  EXPECT_GT(e.prices[0].resource.amount, 0);
}

TEST_F(ExplanationTest, RegretIsAgainstTheFastestThatFits) {
  ExplanationRequest r = request({"scale.kernels"});
  r.regret = true;
  r.scenario.policies = {"offload:activations"};
  const Explanation e = explain(study_, r, nullptr);
  ASSERT_TRUE(e.regret);
  ASSERT_EQ(e.regret->why_none, "");
  EXPECT_EQ(e.regret->own, "offload:what=activations") << "by the name that is compared";
  const PolicyComparison& c = e.regret->comparison;
  const auto own = static_cast<std::size_t>(std::ranges::find(c.policies, e.regret->own) - c.policies.begin());
  ASSERT_LT(own, c.policies.size());
  double best = 1e9;
  for (std::size_t p = 0; p < c.policies.size(); ++p) {
    Scenario s = scenario_;
    if (c.policies[p] != kNoPolicy) s.policies = {c.policies[p]};
    best = std::min(best, step(s));
  }
  EXPECT_NEAR(e.regret->regret(own), step(r.scenario) - best, 1e-9);
  EXPECT_GT(e.regret->regret(own), 0);
}

TEST_F(ExplanationTest, WithinABudgetWhatDoesNotFitHasNoRegret) {
  ExplanationRequest r = request({"scale.kernels"});
  r.regret = true;
  const Bytes peak = study_.run(scenario_, {.record = false}).run.result.tiers[0].peak_reserved;
  r.scenario.budget = std::to_string(peak * 8 / 10) + "B";
  const Explanation e = explain(study_, r, nullptr);
  EXPECT_FALSE(e.here.fits);
  EXPECT_GT(e.missing, 0);
  ASSERT_TRUE(e.regret);
  ASSERT_EQ(e.regret->why_none, "");
  EXPECT_TRUE(e.regret->is_given);
  EXPECT_EQ(e.regret->comparison.budgets.front().bytes, peak * 8 / 10);
  EXPECT_FALSE(e.regret->comparison.cell(0, 0).fits) << "nothing leaves the device";
  EXPECT_GE(e.regret->comparison.fastest(0), 1);
  // The dual price of the budget: what the bound says there and a share below.
  const auto bound = [&](double share) {
    PolicyQuestion question{
        .scenario = scenario_,
        .budgets = {std::to_string(static_cast<Bytes>(static_cast<double>(peak * 8 / 10) * share)) + "B"},
        .policies = {"plan"}};
    return to_seconds(compare_policies(study_, question).bounds.at.front().step_time);
  };
  ASSERT_TRUE(e.regret->bound_seconds_per_byte);
  const Bytes budget = peak * 8 / 10;
  const Bytes apart = budget - static_cast<Bytes>(static_cast<double>(budget) * 0.95);
  EXPECT_NEAR(*e.regret->bound_seconds_per_byte, (bound(0.95) - bound(1)) / static_cast<double>(apart), 1e-15);
  EXPECT_GE(*e.regret->bound_seconds_per_byte, 0);
}

TEST_F(ExplanationTest, IsTheSameForAnyNumberOfThreadsAndFromTheJournal) {
  ScratchFolder folder;
  ExplanationRequest r = request({"gpu.hbm.*", "link.*", "scale.*"});
  r.curves = {parse_axis("pcie=gen3|gen5")};
  const auto values = [](const Explanation& e) {
    std::vector<double> all{e.here.step_time, e.here.peak_reserved};
    for (const Sensitivity& s : e.sensitivities) all.push_back(s.step_time.central.value_or(-1));
    for (const NextBound& b : e.next) all.insert(all.end(), {b.value, b.step_time});
    for (const ShadowPrice& p : e.prices) all.push_back(p.seconds.value_or(-1));
    for (const BreakEvenCurve& curve : e.curves)
      for (const CurvePoint& point : curve.points)
        for (const PointRecord& record : point.choices) all.push_back(figures_of(record)->step_time);
    return all;
  };
  const Explanation one = explain(study_, r, nullptr);
  r.jobs = 4;
  Study other;
  SweepJournal journal(folder / "points.sqlite");
  const Explanation four = explain(other, r, &journal), kept = explain(other, r, &journal);
  EXPECT_EQ(values(one), values(four));
  EXPECT_EQ(values(one), values(kept));
  EXPECT_GT(four.simulated, 0u);
  EXPECT_EQ(kept.simulated, 0u) << "all of it is in the journal";
}

TEST_F(ExplanationTest, WhatMakesNoSenseIsRefused) {
  EXPECT_THROW(explain(study_, request({"gpu.nothing"}), nullptr), UsageError);
  ExplanationRequest far = request({"gpu.hbm.bandwidth"});
  far.share = 0.9;
  EXPECT_THROW(explain(study_, far, nullptr), UsageError);
  ExplanationRequest curve = request({"gpu.hbm.bandwidth"});
  for (const char* axis : {"policy=none|checkpoint", "pcie=gen3", "sequenc=1..4"}) {
    curve.curves = {parse_axis(axis)};
    EXPECT_THROW(explain(study_, curve, nullptr), UsageError) << axis;
  }
}

// The highest that all but one kind reach, by a look at every instant.
TEST_F(ExplanationTest, ThePeakWithoutAKindIsTheHighestOfTheOthers) {
  const memwall::Run run = study_.run(scenario_).run;
  const PeakBinding binding = peak_binding(run);
  ASSERT_FALSE(binding.kinds.empty());
  Bytes sum = 0;
  for (const PeakWithoutKind& kind : binding.kinds) {
    sum += kind.at_peak;
    Bytes highest = 0;
    for (const KindPoint& point : memory_by_kind(run, 0)) {
      Bytes others = 0;
      for (std::size_t k = 0; k < kStorageKinds; ++k)
        if (static_cast<StorageKind>(k) != kind.kind) others += point.by_kind[k];
      highest = std::max(highest, others);
    }
    EXPECT_EQ(kind.peak_without, highest) << to_string(kind.kind);
    EXPECT_NE(kind.then, kind.kind);
  }
  EXPECT_EQ(sum, binding.requested);
  EXPECT_EQ(binding.requested, find_peak(run, 0).requested);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
