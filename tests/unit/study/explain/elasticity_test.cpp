// Are elasticities those of finite differences worked out by hand, and of closed forms where there is one?
#include "study/explain/elasticity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/error.h"
#include "sim/trace/trace_builder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const char* const kNetwork = "gpt2-124m:layers=2,width=64,heads=2,sequence=64,batch=4";

// A kernel and a copy of these durations beside each other, both measured.
Trace kernel_beside_copy(Duration kernel, Duration copy) {
  TraceBuilder builder;
  Op op;
  op.thread = builder.add_thread("main");
  builder.trace().places = {"hbm", "host"};
  for (const auto& [kind, duration] : {std::pair(OpKind::kernel, kernel), std::pair(OpKind::copy, copy)}) {
    op.kind = kind;
    op.stream = builder.add_stream(kind == OpKind::kernel ? "compute" : "copies",
                                   kind == OpKind::kernel ? StreamRole::compute : StreamRole::copy);
    op.duration = duration;
    op.to = kind == OpKind::copy ? 1 : 0;
    if (duration > Duration{}) builder.append(op);
  }
  Trace trace = std::move(builder).finish();
  trace.name = "step";
  trace.machine = "a100-sxm-40gb";
  trace.knowledge.timing = true;
  return trace;
}

// A copy of so many bytes to the host that nobody measured.
Trace one_copy(Bytes bytes) {
  Trace trace = kernel_beside_copy({}, microseconds(1000));
  trace.ops[0].duration = {};
  trace.ops[0].bytes = bytes;
  trace.ops[0].origin = Origin::modelled;
  trace.machine = "";
  trace.knowledge.timing = false;
  return trace;
}

class ElasticityTest : public testing::Test {
 protected:
  PointFigures figures(const Scenario& scenario) { return *figures_of(points_.run(scenario)); }

  Sensitivity of(const Scenario& scenario, const std::string& name, double share = kUsualShare) {
    const VariedNumbers numbers = selected(varied_numbers(study_, scenario), {name});
    EXPECT_EQ(numbers.numbers.size(), 1u) << name;
    return sensitivities(points_, scenario, figures(scenario), numbers.numbers, share).front();
  }

  Study study_;
  ScenarioPoints points_{study_, nullptr, 2};
  Scenario network_{.step = {kNetwork}, .machine = "a100-sxm-40gb"};
};

TEST(Elasticity, OfAPowerIsItsExponentHoweverFarApart) {
  for (const double exponent : {-1.0, 0.5, 2.0})
    for (const double h : {0.001, 0.05, 0.5}) {
      const auto at = [&](double v) { return ValueOutcome{v, 3 * std::pow(v, exponent)}; };
      const Elasticity e = elasticity(at(8 * (1 - h)), at(8), at(8 * (1 + h)));
      EXPECT_NEAR(*e.below, exponent, 1e-9);
      EXPECT_NEAR(*e.above, exponent, 1e-9);
      EXPECT_NEAR(*e.central, exponent, 1e-9);
    }
}

TEST(Elasticity, LiesBetweenItsSidesAndIsOneOfThemWhereTheOtherIsMissing) {
  const Elasticity kink = elasticity(ValueOutcome{0.9, 1 / 0.9}, {1, 1}, ValueOutcome{1.1, 1});
  EXPECT_NEAR(*kink.below, -1, 1e-12);
  EXPECT_EQ(*kink.above, 0);
  EXPECT_LT(*kink.below, *kink.central);
  EXPECT_LT(*kink.central, *kink.above);
  EXPECT_FALSE(kink.is_zero());
  const Elasticity one = elasticity({}, {1, 1}, ValueOutcome{1.1, 1.1});
  EXPECT_FALSE(one.below);
  EXPECT_EQ(one.central, one.above);
  EXPECT_TRUE(elasticity(ValueOutcome{0.9, 7}, {1, 7}, ValueOutcome{1.1, 7}).is_zero());
  EXPECT_FALSE(elasticity({}, {1, 0}, ValueOutcome{1.1, 0}).central) << "no logarithm of nothing";
}

// The number of the brief: what a person gets who runs the step twice with another number.
TEST_F(ElasticityTest, AreFiniteDifferencesByHand) {
  const double here = to_seconds(mean_step(study_.run(network_, {.record = false}).run));
  for (const auto& [name, lower, upper] : {std::tuple("gpu.hbm.bandwidth", "1477.25GB/s", "1632.75GB/s"),
                                           std::tuple("gpu.peak.bf16.rate", "296.4TFLOP/s", "327.6TFLOP/s"),
                                           std::tuple("host.calls.launch", "9.405us", "10.395us"),
                                           std::tuple("gpu.efficiency.gemm.fixed", "2.85us", "3.15us")}) {
    const auto step = [&](const char* value) {
      Scenario s = network_;
      s.settings = {std::string(name) + "=" + value};
      return to_seconds(mean_step(study_.run(s, {.record = false}).run));
    };
    const double below = std::log(here / step(lower)) / std::log(1 / 0.95);
    const double above = std::log(step(upper) / here) / std::log(1.05);
    const double central = std::log(step(upper) / step(lower)) / std::log(1.05 / 0.95);
    const Sensitivity s = of(network_, name);
    EXPECT_NEAR(*s.step_time.below, below, 1e-9) << name;
    EXPECT_NEAR(*s.step_time.above, above, 1e-9) << name;
    EXPECT_NEAR(*s.step_time.central, central, 1e-9) << name;
  }
  EXPECT_FALSE(of(network_, "host.calls.launch").step_time.is_zero()) << "else the test says nothing";
}

TEST_F(ElasticityTest, OfThePeakToAPoliciesParameterIsTheDifferenceByHand) {
  Scenario s = network_;
  s.step = {"gpt2-124m:layers=8,width=64,heads=2,sequence=64,batch=4"};
  s.policies = {"checkpoint:mode=full,fraction=0.5"};
  const Sensitivity fraction = of(s, "checkpoint.fraction", 0.25);
  const auto peak = [&](const char* value) {
    Scenario other = s;
    other.policies = {std::string("checkpoint:mode=full,fraction=") + value};
    const memwall::Run run = study_.run(other, {.record = false}).run;
    return static_cast<double>(run.result.tiers[0].peak_allocated);
  };
  ASSERT_LT(peak("0.625"), peak("0.375"));
  EXPECT_NEAR(*fraction.peak_allocated.central, std::log(peak("0.625") / peak("0.375")) / std::log(0.625 / 0.375),
              1e-9);
  EXPECT_LT(*fraction.peak_allocated.central, 0) << "more is computed again, less is kept";
  EXPECT_GT(*fraction.step_time.central, 0);
}

// T = a + bytes / rate: the elasticity to the rate is minus the share of the copy.
TEST_F(ElasticityTest, OfACopyAloneIsMinusItsShare) {
  const Bytes bytes = 1'000'000'000;
  study_.add_step("copy", one_copy(bytes));
  const Scenario s{.step = {"copy"}, .machine = "a100-sxm-40gb"};
  const double step = figures(s).step_time, share = static_cast<double>(bytes) / 26e9 / step;
  EXPECT_GT(share, 0.99);
  const Elasticity way = of(s, "hbm to host").step_time;
  EXPECT_NEAR(*way.central, -share, 1e-3);
  EXPECT_NEAR(*way.below, -share, 1e-3);
  EXPECT_TRUE(of(s, "host to hbm").step_time.is_zero()) << "the other direction";
  EXPECT_TRUE(of(s, "gpu.peak.bf16.rate").step_time.is_zero());
  // Either link alone is no faster than the other one, and either alone holds it up.
  const Elasticity link = of(s, "link.pcie_d2h.bandwidth").step_time;
  EXPECT_NEAR(*link.below, -share, 1e-3);
  EXPECT_NEAR(*link.above, 0, 1e-9);
}

TEST_F(ElasticityTest, OfComputeAloneIsOneToItsDurationsAndNothingToLinks) {
  study_.add_step("kernel", kernel_beside_copy(microseconds(10000), {}));
  const Scenario s{.step = {"kernel"}};
  const Elasticity kernels = of(s, "scale.kernels").step_time;
  EXPECT_NEAR(*kernels.below, 1, 1e-3);
  EXPECT_NEAR(*kernels.above, 1, 1e-3);
  EXPECT_TRUE(of(s, "between hbm and host").step_time.is_zero());
  EXPECT_TRUE(of(s, "scale.copies").step_time.is_zero());
}

// A kernel and a copy that end together: more of either is a longer step, less of one alone is none shorter.
TEST_F(ElasticityTest, DiffersOnBothSidesOfAKink) {
  study_.add_step("both", kernel_beside_copy(microseconds(10000), microseconds(10000)));
  const Scenario s{.step = {"both"}};
  for (const char* name : {"scale.kernels", "scale.copies"}) {
    const Elasticity e = of(s, name).step_time;
    EXPECT_NEAR(*e.above, 1, 2e-3) << name;
    EXPECT_NEAR(*e.below, 0, 2e-3) << name;
    EXPECT_GT(*e.central, 0.4) << name;
    EXPECT_LT(*e.central, 0.6) << name;
  }
}

TEST_F(ElasticityTest, WholeNumbersGoByOneAndASideThatIsRefusedIsMissing) {
  Scenario s = network_;
  const Sensitivity count = of(s, "gpu.multiprocessors");
  EXPECT_EQ(count.lower.value, 107);
  EXPECT_EQ(count.upper.value, 109);
  s.policies = {"offload:what=activations,min_bytes=0"};
  const Sensitivity fraction = of(s, "offload.fraction");
  EXPECT_TRUE(fraction.step_time.below);
  EXPECT_FALSE(fraction.step_time.above) << "a share of 1.05";
  EXPECT_NE(fraction.upper.refusal, "");
  EXPECT_EQ(fraction.step_time.central, fraction.step_time.below);
}

TEST_F(ElasticityTest, IsTheSameForAnyNumberOfThreads) {
  const std::vector<VariedNumber> numbers =
      selected(varied_numbers(study_, network_), {"gpu.hbm.*", "host.calls.*", "scale.*"}).numbers;
  std::vector<std::vector<double>> values;
  for (const unsigned jobs : {1u, 4u}) {
    Study study;
    ScenarioPoints points(study, nullptr, jobs);
    values.emplace_back();
    for (const Sensitivity& s : sensitivities(points, network_, *figures_of(points.run(network_)), numbers, 0.05))
      values.back().insert(values.back().end(), {s.lower.figures->step_time, s.upper.figures->step_time,
                                                 s.step_time.central.value_or(0), s.upper.figures->peak_reserved});
  }
  EXPECT_EQ(values[0], values[1]);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
