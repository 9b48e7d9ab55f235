// Operators under the roofs of a machine of round numbers, and the drawing of them.
#include "models/hw/roofline.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/figure_checks.h"
#include "tests/support/step_program.h"
#include "tests/support/test_machine.h"
#include "traces/figure/axis.h"
#include "traces/figure/roofline_figure.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// HBM 1 TB/s; L2 4 TB/s that holds 10 MB; 100 TFLOP/s; a fixed cost of 1 us per elementwise kernel.
Machine machine_with_l2() {
  Machine m = test_machine();
  m.gpu.l2_bytes = 10'000'000;
  m.gpu.l2_bandwidth = 4e12;
  m.gpu.efficiencies = {{.operator_class = OperatorClass::elementwise, .fixed = microseconds(1)}};
  return m;
}

Op kernel(double flops, Bytes bytes, Duration duration, OperatorClass c = OperatorClass::gemm) {
  Op op;
  op.kind = OpKind::kernel;
  op.flops = flops;
  op.bytes = bytes;
  op.duration = duration;
  op.operator_class = c;
  op.data_type = DataType::bf16;
  return op;
}

struct Step : StepProgram {
  OpId add(const std::string& name, const std::string& path, const Op& cost) {
    module(path);
    const OpId id = op(name, {}, {});
    Op& made = builder().trace().ops[id];
    made.flops = cost.flops, made.bytes = cost.bytes, made.duration = cost.duration;
    made.operator_class = cost.operator_class, made.data_type = cost.data_type;
    return id;
  }
};

Roofline of(const Op& op, const Machine& machine = machine_with_l2()) {
  Step step;
  step.add("work", "layers.0", op);
  return roofline(std::move(step).finish(), machine);
}

TEST(Roofline, AProductOfHighIntensityIsBoundByArithmetic) {
  // 1e11 FLOPs at 100 TFLOP/s are 1 ms; 100 MB from HBM are 0.1 ms; L2 serves nothing of so large a set.
  const Roofline r = of(kernel(1e11, 100'000'000, microseconds(2000)));
  const RooflineOperator& o = r.operators.at(0);
  EXPECT_EQ(o.bound(), RooflineBound::compute);
  EXPECT_DOUBLE_EQ(o.intensity_at_l2(), 1000);
  EXPECT_DOUBLE_EQ(o.intensity_at_hbm(), 1000);
  EXPECT_DOUBLE_EQ(o.attainable(), 100e12);
  EXPECT_DOUBLE_EQ(o.achieved(), 50e12);
  EXPECT_DOUBLE_EQ(o.share_of_roof(), 0.5);
  EXPECT_EQ(r.memory_bound().count(), 0);
}

TEST(Roofline, ManyBytesPerFlopAreBoundByHbmFewerByL2) {
  const Roofline hbm = of(kernel(1e8, 100'000'000, microseconds(125)));
  EXPECT_EQ(hbm.operators.at(0).bound(), RooflineBound::hbm);
  EXPECT_DOUBLE_EQ(hbm.operators.at(0).attainable(), 1e12);  // 1 FLOP/B x 1 TB/s
  EXPECT_DOUBLE_EQ(hbm.operators.at(0).share_of_roof(), 0.8);
  EXPECT_EQ(hbm.memory_bound(), hbm.kernel_time);
  // A working set of a tenth of L2: a tenth of the traffic reaches HBM, and L2 is what takes longest.
  const Roofline l2 = of(kernel(1e6, 1'000'000, nanoseconds(500)));
  const RooflineOperator& o = l2.operators.at(0);
  EXPECT_EQ(o.bound(), RooflineBound::l2);
  EXPECT_DOUBLE_EQ(o.intensity_at_l2(), 1);
  EXPECT_DOUBLE_EQ(o.intensity_at_hbm(), 10);
  EXPECT_DOUBLE_EQ(o.attainable(), 4e12);
  EXPECT_EQ(l2.memory.at(0).name, "L2");
}

TEST(Roofline, FusedAttentionDoesNotComputeWhatItsMaskHides) {
  // 2 x 4 heads, 1024 queries and keys, heads of 64: 4 x 8 x 1024^2 x 64 FLOPs in all pairs, about half below the mask.
  const double all = 4.0 * 8 * 1024 * 1024 * 64;
  for (const bool causal : {false, true}) {
    Step step;
    const OpId id = step.add("attention", "layers.0", kernel(all, 0, microseconds(100), OperatorClass::attention));
    Trace& trace = step.builder().trace();
    trace.ops[id].shape = trace.shapes.intern({2, 4, 4, 1024, 1024, 64, causal ? 1 : 0});
    const Roofline r = roofline(std::move(step).finish(), machine_with_l2());
    EXPECT_NEAR(r.operators.at(0).flops / all, causal ? 0.5 * 1025 / 1024 : 1, 1e-12);
    EXPECT_NEAR(r.operators.at(0).share_of_roof(), r.operators.at(0).flops / 1e14 / 100e-6, 1e-12);
  }
}

TEST(Roofline, AShortKernelIsBoundByLatency) {
  const auto of_length = [](Duration d) { return of(kernel(0, 1000, d, OperatorClass::elementwise)).operators.at(0); };
  EXPECT_EQ(of_length(microseconds(2)).bound(), RooflineBound::latency);
  EXPECT_EQ(of_length(nanoseconds(2001)).bound(), RooflineBound::l2);
}

TEST(Roofline, NeitherFlopsNorBytesAreNoBound) {
  const Roofline r = of(kernel(0, 0, microseconds(5)));
  EXPECT_EQ(r.operators.at(0).bound(), RooflineBound::unknown);
  EXPECT_TRUE(r.compute.empty());
  EXPECT_DOUBLE_EQ(r.operators.at(0).share_of_roof(), 0);
}

TEST(Roofline, LayersAreFoldedAndOperatorsSortedByTime) {
  Step step;
  for (const char* path : {"layers.0.mlp", "layers.11.mlp"}) step.add("mm", path, kernel(1e9, 1000, microseconds(10)));
  step.add("mm", "layers.0.attention", kernel(1e9, 1000, microseconds(15)));
  step.backward();
  step.add("mm", "layers.0.mlp", kernel(1e9, 1000, microseconds(5)));
  const Roofline r = roofline(std::move(step).finish(), machine_with_l2());
  ASSERT_EQ(r.operators.size(), 3u);
  EXPECT_EQ(r.operators[0].module, "layers.*.mlp");
  EXPECT_EQ(r.operators[0].ops, 2u);
  EXPECT_EQ(r.operators[0].duration, microseconds(20));
  EXPECT_EQ(r.operators[1].module, "layers.*.attention");
  EXPECT_EQ(r.operators[2].phase, Phase::backward);
  EXPECT_EQ(r.kernel_time, microseconds(40));
  EXPECT_EQ(r.by_class[static_cast<std::size_t>(OperatorClass::gemm)], microseconds(40));
}

TEST(Roofline, FoldsNumbersOnly) {
  EXPECT_EQ(folded_module("layers.3.mlp"), "layers.*.mlp");
  EXPECT_EQ(folded_module("h.11"), "h.*");
  EXPECT_EQ(folded_module("Block_12.norm"), "Block_*.norm");
  EXPECT_EQ(folded_module("conv1.fc2b.2d"), "conv1.fc2b.2d");
  EXPECT_EQ(folded_module("0.10"), "*.*");
  EXPECT_EQ(folded_module(""), "");
}

TEST(Roofline, CopiesAreHeldAgainstTheirRoute) {
  Step step;
  Op copy;
  copy.kind = OpKind::copy;
  copy.to = step.builder().trace().place("host");
  const OpId id = step.op("copy", {}, {}, copy);
  step.builder().trace().ops[id].bytes = 1'000'000'000;
  step.builder().trace().ops[id].duration = microseconds(200'000);
  const Roofline r = roofline(std::move(step).finish(), machine_with_l2());
  ASSERT_EQ(r.transfers.size(), 1u);
  EXPECT_EQ(r.transfers[0].name, "hbm to host");
  EXPECT_DOUBLE_EQ(r.transfers[0].bandwidth, 10e9);
  EXPECT_EQ(r.kernel_time.count(), 0);
}

TEST(Roofline, CopiesWithinTheGpuAreHeldAgainstL2AndHbm) {
  Step step;
  Op copy;
  copy.kind = OpKind::copy;
  const OpId id = step.op("copy", {}, {}, copy);
  Op& made = step.builder().trace().ops[id];
  made.bytes = 1'000'000'000;
  made.duration = microseconds(4000);
  made.origin = Origin::transferred;
  const Roofline r = roofline(std::move(step).finish(), machine_with_l2());
  ASSERT_EQ(r.transfers.size(), 1u);
  EXPECT_EQ(r.transfers[0].name, "hbm to hbm");
  EXPECT_NEAR(r.transfers[0].bandwidth, 1e12 / 2, 1e6) << "read and written at 1 TB/s";
  EXPECT_NEAR(r.transfers[0].share_of_roof(), 0.5, 1e-6);
  EXPECT_EQ(r.transfers[0].origin, Origin::transferred);
}

// --- the drawing

TEST(LogAxis, EqualFactorsAreEqualLengths) {
  const LogScale scale{1, 1000, 0, 30};
  EXPECT_NEAR(scale(10), 10, 1e-12);
  EXPECT_NEAR(scale(100), 20, 1e-12);
  EXPECT_EQ(decade_ticks(0.05, 200), (std::vector<double>{0.1, 1, 10, 100}));
  EXPECT_EQ(decade_ticks(1, 1), std::vector<double>{1});
  EXPECT_TRUE(decade_ticks(2, 5).empty());
  EXPECT_EQ(format_decade(0.01), "0.01");
  EXPECT_EQ(format_decade(100), "100");
  EXPECT_EQ(format_decade(1e4), "10 k");
  EXPECT_EQ(format_decade(1e12), "1 T");
}

RooflineChart chart() {
  RooflineChart c;
  c.title = "step on machine: roofline";
  c.subtitle = "a sentence";
  c.memory = {{"L2", 4e12}, {"HBM", 1e12}};
  c.compute = {{"bf16", 100e12}, {"fp32", 10e12}};
  for (int i = 0; i < 14; ++i)
    c.points.push_back({.name = "operator " + std::to_string(i),
                        .module = i % 2 == 0 ? "layers.*.mlp" : "",
                        .detail = "10 % of the time",
                        .word = i % 3 == 0 ? "gemm" : "elementwise",
                        .share = 0.3 / (1 + i),
                        .flops_per_second = i == 5 ? 0 : 1e12 * (1 + i % 4),
                        .intensity = i == 6 ? INFINITY : 10.0 + i % 3,
                        .near_intensity = i == 7 ? 2.0 : 10.0});
  return c;
}

TEST(RooflineFigure, HasEveryRoofPointAndNumberAndIsLegible) {
  const Figure figure = draw_roofline(chart());
  expect_legible(figure);
  const std::vector<Text> texts = all_of<Text>(figure);
  for (const char* part : {"L2 4.00 TB/s", "HBM 1.00 TB/s", "bf16 100 TFLOP/s", "fp32 10.0 TFLOP/s", "FLOP per byte",
                           "performance (FLOP/s)", "no FLOPs: not drawn", "operator 9"})
    EXPECT_NE(text_with(texts, part), nullptr) << part;
  EXPECT_EQ(text_with(texts, "operator 10"), nullptr) << "only ten are in the key";
  EXPECT_TRUE(has_title(figure, "operator 13")) << "but all are drawn";
  std::size_t circles = 0;
  for (const Rectangle& r : all_of<Rectangle>(figure)) circles += r.radius > 2.2 && r.width == r.height;
  EXPECT_EQ(circles, 13u) << "all but the one without FLOPs";
}

TEST(RooflineFigure, AnEmptyStepIsDrawnToo) {
  RooflineChart empty;
  empty.title = "nothing";
  expect_legible(draw_roofline(empty));
  empty.memory = {{"HBM", 1e12}};
  expect_legible(draw_roofline(empty));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
