// Do operators, kernels and the host's parts add up to what the run took, and is the MFU what its definition says?
#include "traces/run/analysis/top_work.h"

#include <gtest/gtest.h>

#include "tests/support/gpt_trace.h"
#include "tests/support/handmade_run.h"
#include "tests/support/test_machine.h"
#include "traces/run/analysis/summary.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(TopWork, AddsUpToTheDeviceTimeAndToTheHostsPartOfThePath) {
  GptShape shape;
  shape.steps = 2;
  shape.host_gap = microseconds(9);
  const memwall::Run run = simulate_and_record(gpt_step(shape), test_machine(), {});
  const std::vector<PathSegment> path = critical_path(run);
  const TopWork top = top_work(run, path, 1'000'000);
  double device = 0;
  for (std::size_t i = 0; i < run.trace->ops.size(); ++i)
    if (run.result.records[i].start != kNever)
      device += to_seconds(run.result.records[i].end - run.result.records[i].start);
  double operators = 0, kernels = 0;
  std::uint64_t count = 0;
  for (const WorkTotal& total : top.operators) operators += total.time.seconds(), count += total.count;
  for (const WorkTotal& total : top.kernels) kernels += total.time.seconds();
  EXPECT_NEAR(operators, device, 1e-12 * device);
  EXPECT_NEAR(kernels, device, 1e-12 * device);
  EXPECT_NEAR(top.device.seconds(), device, 1e-12 * device);
  EXPECT_EQ(count, summarize(run).device_ops);
  EXPECT_EQ(top.operators.size(), top.operator_names);
  for (std::size_t i = 1; i < top.operators.size(); ++i)
    EXPECT_GE(top.operators[i - 1].time.seconds(), top.operators[i].time.seconds());

  Duration host{}, on_path{};
  for (const HostTotal& total : top.host) host += total.time;
  for (const PathSegment& segment : path)
    if (segment.time_class == TimeClass::host) on_path += segment.end - segment.begin;
  EXPECT_EQ(host, on_path);
  EXPECT_GT(host.count(), 0);
}

// One kernel of 8 us that does a tenth of what the machine could.
memwall::Run one_product(double flops, OperatorClass operator_class, Phase phase = Phase::forward,
                         const Shape& shape = {}) {
  HandmadeRun hand;
  const OpId id = hand.device(OpKind::kernel, "gemm", 0, 0, 1, 2, 10);
  if (!shape.empty()) hand.run.trace.edit().ops[id].shape = hand.run.trace.edit().shapes.intern(shape);
  Op& op = hand.run.trace.edit().ops[id];
  op.flops = flops;
  op.operator_class = operator_class;
  op.data_type = DataType::fp16;
  op.phase = phase;
  hand.run.machine.gpu.peaks = {{DataType::fp16, 100e12}, {DataType::fp32, 10e12}};
  return hand.finish();
}

TEST(TopWork, MfuIsTheModelsFlopsAgainstThePeakOfTheStep) {
  const memwall::Run run = one_product(100e12 * 10e-6 / 10, OperatorClass::gemm);
  const auto use = summarize(run).top.flops;
  ASSERT_TRUE(use);
  EXPECT_NEAR(use->mfu, 0.1, 1e-12);  // the step lasts 10 us from its first call
  EXPECT_EQ(use->arithmetic, DataType::fp16);
}

TEST(TopWork, WhatIsComputedAgainDoesNotCount) {
  const auto use = summarize(one_product(1e9, OperatorClass::gemm, Phase::recompute)).top.flops;
  ASSERT_TRUE(use);
  EXPECT_EQ(use->flops, 0);
  EXPECT_EQ(use->recomputed, 1e9);
}

// Its rate is what the kernel did; the MFU counts attention whole, as its definition does.
TEST(TopWork, AttentionDoesWhatItsMaskLeaves) {
  const double all = 4.0 * 8 * 1024 * 1024 * 64;
  for (const bool causal : {false, true}) {
    const TopWork top =
        summarize(one_product(all, OperatorClass::attention, Phase::forward, {2, 4, 4, 1024, 1024, 64, causal ? 1 : 0}))
            .top;
    EXPECT_NEAR(top.operators.at(0).flops, causal ? all * 0.5 * 1025 / 1024 : all, 1e-3);
    ASSERT_TRUE(top.flops);
    EXPECT_EQ(top.flops->flops, all);
  }
}

TEST(TopWork, WithoutFlopsThereIsNoMfu) {
  EXPECT_FALSE(summarize(one_product(0, OperatorClass::gemm)).top.flops);
  EXPECT_FALSE(summarize(one_product(1e9, OperatorClass::elementwise)).top.flops) << "no matrix products";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
