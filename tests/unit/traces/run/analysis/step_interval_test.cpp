// Does the interval of a modelled step follow from the residuals of what its critical path is made of?
#include "traces/run/analysis/step_interval.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/trace/trace_builder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// A path of 10 ms: a product of 6 ms, an elementwise kernel of 3 ms, 1 ms of host before it.
struct Example {
  Example() {
    TraceBuilder builder;
    for (const OperatorClass c : {OperatorClass::gemm, OperatorClass::elementwise}) {
      Op op;
      op.kind = OpKind::kernel;
      op.operator_class = c;
      op.origin = Origin::modelled;
      builder.append(op);
    }
    run.trace = builder.trace();
    run.machine.price_errors = {{OpKind::kernel, OperatorClass::gemm, 0.1},
                                {OpKind::kernel, OperatorClass::elementwise, 0.3},
                                {OpKind::host_work, OperatorClass::other, 0.5}};
    const auto segment = [&](int begin, int end, OpId op, TimeClass c, PathPart part) {
      path.push_back({milliseconds(begin), milliseconds(end), op, c, part});
    };
    segment(0, 6, 0, TimeClass::compute, PathPart::work);
    segment(6, 7, 1, TimeClass::host, PathPart::gap);
    segment(7, 10, 1, TimeClass::compute, PathPart::work);
  }
  std::optional<StepInterval> interval() const { return step_interval(run, path, milliseconds(20)); }
  static Time milliseconds(int ms) { return from_seconds(ms * 1e-3); }
  Run run;
  std::vector<PathSegment> path;
};

// The deviation of the prices, what the program adds to either side, and what its host does.
void expect_ends(const std::optional<StepInterval>& interval, double deviation, ProgramDeviation program,
                 double host_path = 0) {
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->host.path, host_path, 1e-12);
  const double longer = std::log(1 + (std::exp(1.2816 * host_deviation().longer) - 1) * host_path);
  const double shorter = -std::log(1 - (1 - std::exp(-1.2816 * host_deviation().shorter)) * host_path);
  EXPECT_NEAR(to_seconds(interval->high),
              20e-3 * std::exp(std::hypot(1.2816 * deviation, 1.2816 * program.longer, longer)), 1e-9);
  EXPECT_NEAR(to_seconds(interval->low),
              20e-3 / std::exp(std::hypot(1.2816 * deviation, 1.2816 * program.shorter, shorter)), 1e-9);
}

TEST(StepInterval, ErrorsOfClassesAreIndependent) {
  const double deviation = std::sqrt(std::pow(0.6 * 0.1, 2) + std::pow(0.3 * 0.3, 2) + std::pow(0.1 * 0.5, 2)) / 1.645;
  const auto interval = Example().interval();
  expect_ends(interval, deviation, program_deviation(JobKind::one_gpu), 0.1);
  EXPECT_NEAR(interval->known_share, 1, 1e-12);
  EXPECT_EQ(interval->job, JobKind::one_gpu);
}

TEST(StepInterval, ErrorsWithinAClassAreCommon) {
  Example e;
  e.run.trace.edit().ops[1].operator_class = OperatorClass::gemm;
  const double deviation = std::hypot(0.9 * 0.1, 0.1 * 0.5) / 1.645;
  expect_ends(e.interval(), deviation, program_deviation(JobKind::one_gpu), 0.1);
}

// Constants hold what prices have in common and what the host takes.
TEST(StepInterval, WithFittedConstantsHalfOfThePricesErrorsAreLeftAndNoHost) {
  const auto interval = Example().interval();
  ASSERT_TRUE(interval);
  const StepInterval fitted = with_fitted_constants(*interval, Example::milliseconds(20));
  const ProgramDeviation program = fitted_program_deviation(JobKind::one_gpu);
  EXPECT_NEAR(to_seconds(fitted.high),
              20e-3 * std::exp(std::hypot(interval->of_prices.longer / 2, 1.2816 * program.longer)), 1e-9);
  EXPECT_NEAR(to_seconds(fitted.low),
              20e-3 / std::exp(std::hypot(interval->of_prices.shorter / 2, 1.2816 * program.shorter)), 1e-9);
}

TEST(StepInterval, RecordedHostTimeWithoutDeviceWorkHasNone) {
  Example e;
  for (Op& op : e.run.trace.edit().ops) op.kind = OpKind::alloc;  // a memory snapshot
  EXPECT_FALSE(e.interval());
}

TEST(StepInterval, WhatWasMeasuredIsExactAndSoIsTheHostThen) {
  Example e;
  e.run.trace.edit().ops[0].origin = Origin::measured;
  const auto interval = e.interval();
  expect_ends(interval, 0.3 * 0.3 / 1.645, {});
  EXPECT_NEAR(interval->known_share, 0.3, 1e-12);
  e.run.trace.edit().ops[1].origin = Origin::measured;
  EXPECT_FALSE(e.interval());
}

TEST(StepInterval, ATransferredOpHasTheErrorThatItWasCarriedWith) {
  Example e;
  for (Op& op : e.run.trace.edit().ops) op.origin = Origin::transferred;
  e.run.trace.edit().ops[0].error_permille = 200;
  e.run.trace.edit().ops[1].error_permille = 400;
  const ProgramDeviation program{carried_deviation(), carried_deviation()};
  expect_ends(e.interval(), std::hypot(0.6 * 0.2, 0.3 * 0.4) / 1.645, program);
  EXPECT_TRUE(e.interval()->carried);
  EXPECT_NEAR(e.interval()->known_share, 0.9, 1e-12) << "host time is the capture's";
  e.run.trace.edit().ops[1].operator_class = OperatorClass::gemm;
  expect_ends(e.interval(), (0.6 * 0.2 + 0.3 * 0.4) / 1.645, program);
  e.run.trace.edit().ops[1].kind = OpKind::copy;
  expect_ends(e.interval(), std::hypot(0.6 * 0.2, 0.3 * 0.4) / 1.645, program);
}

TEST(StepInterval, WithoutKnownErrorsThereIsNone) {
  Example e;
  e.run.machine.price_errors.clear();
  EXPECT_FALSE(e.interval());
  e = Example();
  e.path.clear();
  EXPECT_FALSE(e.interval());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
