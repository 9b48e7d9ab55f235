// Do operators cost what their shapes say: tiles, waves, alignment, split k, fused attention, caches?
#include "models/hw/kernel_cost.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models/hw/attention_cost.h"
#include "models/hw/gemm_cost.h"
#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// 100 multiprocessors of 1 TFLOP/s, an L2 that never limits, no fixed times.
Machine simple() {
  Machine m;
  m.name = "simple";
  m.gpu.multiprocessors = 100;
  m.gpu.compute_major = 8;
  m.gpu.l2_bytes = 40'000'000;
  m.gpu.l2_bandwidth = 1e15;
  m.gpu.peaks = {{DataType::fp32, 10e12}, {DataType::fp16, 100e12}};
  m.gpu.efficiencies = {{.operator_class = OperatorClass::other}};
  m.gpu.matrix.main_loops = {{DataType::fp16, 0.5}, {DataType::fp32, 1}};
  m.gpu.matrix.alignment.points = {{2, 0.5}, {16, 1}};
  AttentionCost attention;
  attention.forward.points = {{128, 0.5}, {256, 0.8}};
  attention.backward = 0.8;
  attention.start_up = 100;
  attention.causal_start_up = 400;
  m.gpu.attention = {attention};
  m.links = {{.name = "hbm", .bandwidth = 1e12}};
  return m;
}

Op op(OperatorClass c, DataType t = DataType::fp16, Phase phase = Phase::forward) {
  Op o;
  o.kind = OpKind::kernel;
  o.operator_class = c;
  o.data_type = t;
  o.phase = phase;
  return o;
}

double seconds(const Machine& m, const Op& o, const Shape& shape) { return to_seconds(kernel_duration(m, o, shape)); }

double product(const Machine& m, std::int64_t rows, std::int64_t columns, std::int64_t k, std::int64_t batch = 1) {
  return seconds(m, op(OperatorClass::gemm), {batch, rows, columns, k});
}

TEST(GemmCost, ExactlyOneWaveRunsAtTheMainLoopsRate) {
  // 10 x 10 tiles of 256 x 128 on 100 multiprocessors, each at 1 TFLOP/s * 0.5.
  const double tile = 2.0 * 256 * 128 * 4096 / 0.5e12;
  EXPECT_NEAR(product(simple(), 2560, 1280, 4096), tile, 1e-9 * tile);
  const GemmPlan plan = plan_gemm(simple(), {1, 2560, 1280, 4096}, DataType::fp16, 1, 128);
  EXPECT_EQ(plan.per_multiprocessor * plan.tile_m * plan.tile_n, 256 * 128);
  EXPECT_EQ(plan.splits, 1u);
}

TEST(GemmCost, TheLastWaveIsPaidInFull) {
  // One row more: of tiles of 64 x 32, the least waste, 41 x 40 instead of 40 x 40. 17 each instead of 16.
  const double one = product(simple(), 2560, 1280, 4096), more = product(simple(), 2561, 1280, 4096);
  EXPECT_NEAR(more / one, 17.0 / 16, 1e-9);
}

TEST(GemmCost, EveryWaveStartsUp) {
  Machine m = simple();
  const double without = product(m, 25600, 1280, 4096);
  m.gpu.matrix.start_up = microseconds(1);
  EXPECT_NEAR(product(m, 25600, 1280, 4096) - without, 10e-6, 1e-9) << "ten waves";
}

TEST(GemmCost, RowsThatAreNotAlignedAreSlower) {
  const Machine m = simple();
  EXPECT_GT(product(m, 2560, 1279, 4096), 1.9 * product(m, 2560, 1280, 4096)) << "n is odd: 2 bytes";
  EXPECT_NEAR(product(m, 2560, 1276, 4096) / product(m, 2560, 1280, 4096), 1 / (0.5 + 0.5 * 2 / 3), 1e-6) << "8 bytes";
  EXPECT_EQ(product(m, 2555, 1280, 4096), product(m, 2560, 1280, 4096)) << "m lies across rows in a forward";
  const Shape odd{1, 2555, 1280, 4096};
  EXPECT_GT(seconds(m, op(OperatorClass::gemm, DataType::fp16, Phase::backward), odd),
            seconds(m, op(OperatorClass::gemm), odd));
}

TEST(GemmCost, FewTilesOfALongProductAreSplit) {
  Machine m = simple();
  const GemmPlan plan = plan_gemm(m, {1, 256, 128, 65536}, DataType::fp16, 1, 128);
  EXPECT_GT(plan.splits, 1u);
  EXPECT_LT(plan.seconds, 2.0 * 256 * 128 * 65536 / 0.5e12 / 8);
  m.links[0].bandwidth = 1e6;  // where adding up is dear, nothing is
  EXPECT_EQ(plan_gemm(m, {1, 256, 128, 65536}, DataType::fp16, 1, 128).splits, 1u);
}

TEST(GemmCost, SmallTilesAreLimitedByWhatL2Feeds) {
  Machine m = simple();
  m.gpu.l2_bandwidth = 0.25e12;  // a tile of 256 x 128 does 85 FLOPs for a byte: 21 of 50 TFLOP/s
  const double tile = 2.0 * 256 * 128 * 4096;
  EXPECT_NEAR(product(m, 2560, 1280, 4096), tile / (0.25e12 * 2 * 256 * 128 / (2 * 384) / 100), 1e-9);
  m.gpu.compute_major = 9;  // clusters load the common operand once
  EXPECT_NEAR(product(m, 2560, 1280, 4096), tile / (0.25e12 * 2 * 256 * 256 / (2 * 512) / 100), 1e-9);
}

TEST(GemmCost, MoreWorkIsNeverFasterWithinAnAlignment) {
  for (const char* name : {"a100-sxm-80gb", "h100-sxm-80gb", "v100-sxm2-32gb"}) {
    const Machine m = load_machine(name);
    for (int extent = 0; extent < 3; ++extent) {
      Shape shape{2, 192, 320, 448};
      double last = 0;
      for (int step = 0; step < 120; ++step) {
        shape[static_cast<std::size_t>(1 + extent)] += 64;
        const double now = seconds(m, op(OperatorClass::gemm), shape);
        EXPECT_GE(now, last) << name << " extent " << extent << " " << shape[1] << " " << shape[2] << " " << shape[3];
        last = now;
      }
    }
  }
}

TEST(GemmCost, HostileShapesHaveAFinitePriceOrAreRefused) {
  const Machine m = load_machine("a100-sxm-80gb");
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_GE(product(m, 0, 1, 1), 0);
  EXPECT_GE(product(m, -5, 1, 1), 0);
  EXPECT_GT(product(m, 1, 1, 1), 0);
  const GemmPlan plan = plan_gemm(m, {1e3, 1e6, 1e6, 1e6}, DataType::fp16, 1, 2);
  EXPECT_TRUE(std::isfinite(plan.seconds));
  EXPECT_THROW(kernel_duration(m, op(OperatorClass::gemm), {most, most, most, most}), UsageError);
  EXPECT_THROW(kernel_duration(m, op(OperatorClass::attention), {most, most, 1, most, most, most, 1}), UsageError);
  EXPECT_THROW(kernel_duration(m, op(OperatorClass::convolution), {most, most, most, most, most, 1}), UsageError);
}

TEST(GemmCost, UnknownShapesAndMachinesWithoutMainLoopsKeepTheRoofline) {
  Machine m = simple();
  m.gpu.efficiencies = {{.operator_class = OperatorClass::gemm, .compute = 0.25}};
  Op o = op(OperatorClass::gemm);
  o.flops = 1e12;
  EXPECT_NEAR(seconds(m, o, {}), 1e12 / (100e12 * 0.25), 1e-12);
  EXPECT_NEAR(seconds(m, o, {1, 2, 3}), 1e12 / (100e12 * 0.25), 1e-12) << "three extents are no product";
  m.gpu.matrix.main_loops.clear();
  EXPECT_NEAR(seconds(m, o, {1, 2560, 1280, 4096}), 1e12 / (100e12 * 0.25), 1e-12);
}

TEST(ConvolutionCost, IsTheProductOfItsImplicitGemm) {
  Machine m = simple();
  m.gpu.matrix.convolution = 0.5;
  // 10 images of 256 positions, 128 channels to 1280, 3 x 3 taps: 2560 x 1280 with k = 1152.
  const double gemm = product(simple(), 2560, 1280, 1152);
  EXPECT_NEAR(seconds(m, op(OperatorClass::convolution), {10, 128, 1280, 256, 9, 1}), 2 * gemm, 1e-9);
  Op backward = op(OperatorClass::convolution, DataType::fp16, Phase::backward);
  backward.flops = 4.0 * 2560 * 1280 * 1152;
  const double both = seconds(m, backward, {10, 128, 1280, 256, 9, 1});
  backward.flops /= 2;
  EXPECT_LT(seconds(m, backward, {10, 128, 1280, 256, 9, 1}), 0.7 * both) << "the first layer has no input gradient";
  // Channels are put innermost and back at 1 TB/s; plain fp32 needs no such order.
  Op converted = op(OperatorClass::convolution);
  converted.bytes = 300'000'000;
  EXPECT_NEAR(seconds(m, converted, {10, 128, 1280, 256, 9, 1}), 2 * gemm + 600e-6, 1e-9);
  converted.data_type = DataType::fp32;
  m.gpu.l2_bytes = 0;
  const double plain = seconds(m, converted, {10, 128, 1280, 256, 9, 1});
  converted.bytes = 0;
  EXPECT_EQ(seconds(m, converted, {10, 128, 1280, 256, 9, 1}), plain);
}

TEST(AttentionCost, FollowsTheBenchmarksCountOfFlops) {
  const Shape full{2, 8, 8, 1024, 1024, 64, 0}, causal{2, 8, 8, 1024, 1024, 64, 1};
  EXPECT_EQ(attention_flops(full), 4.0 * 2 * 8 * 1024 * 1024 * 64);
  EXPECT_EQ(attention_flops(causal), 4.0 * 2 * 8 * (1024.0 * 1025 / 2) * 64);
  EXPECT_EQ(attention_flops({1, 1, 1, 1, 1024, 64, 1}), 4.0 * 1024 * 64) << "one query at the end sees all keys";
}

TEST(AttentionCost, IsFlopsOverRateAndAStartUp) {
  // 25 x 4 blocks of 128 queries: exactly one wave.
  const Machine m = simple();
  const Shape shape{25, 4, 4, 128, 1000, 64, 0};
  const double forward = attention_flops(shape) / (100e12 * 0.5) * (1 + 100.0 / 1000);
  EXPECT_NEAR(seconds(m, op(OperatorClass::attention), shape), forward, 1e-9);
  EXPECT_NEAR(seconds(m, op(OperatorClass::attention, DataType::fp16, Phase::backward), shape), 2.5 * forward / 0.8,
              1e-9);
  EXPECT_NEAR(seconds(m, op(OperatorClass::attention, DataType::fp16, Phase::recompute), shape), forward, 1e-9);
  const Shape causal{25, 4, 4, 128, 1000, 128, 1};
  EXPECT_NEAR(seconds(m, op(OperatorClass::attention), causal),
              attention_flops(causal) / (100e12 * 0.8) * (1 + 400.0 / 1000), 1e-9);
}

double attention(const Machine& m, AttentionKernel kernel, Phase phase = Phase::forward, std::int64_t size = 128) {
  return seconds(m, op(OperatorClass::attention, DataType::bf16, phase),
                 with_attention_kernel({2, 16, 16, 8192, 8192, size, 1}, kernel));
}

// Each kernel by its own entry; one that the file does not list beside FlashAttention-2, with a wider error.
TEST(AttentionCost, EachKernelHasItsOwnShare) {
  Machine m = simple();
  m.gpu.attention.front().residual = 0.05;
  AttentionCost third = m.gpu.attention.front();
  third.kernel = AttentionKernel::flash_attention_3;
  third.forward.points = {{128, 0.75}, {256, 0.9}};
  third.residual = 0.1;
  m.gpu.attention.insert(m.gpu.attention.begin(), third);
  const Shape shape{2, 16, 16, 8192, 8192, 64, 0};
  const auto with = [&](AttentionKernel kernel) { return with_attention_kernel(shape, kernel); };
  const double second = seconds(m, op(OperatorClass::attention), shape);
  EXPECT_EQ(seconds(m, op(OperatorClass::attention), with(AttentionKernel::flash_attention_2)), second);
  EXPECT_NEAR(seconds(m, op(OperatorClass::attention), with(AttentionKernel::flash_attention_3)) / second, 0.5 / 0.75,
              1e-6);
  EXPECT_NEAR(seconds(m, op(OperatorClass::attention), with(AttentionKernel::triton)) / second, 1.9, 1e-6);
  EXPECT_NEAR(seconds(m, op(OperatorClass::attention), with(AttentionKernel::memory_efficient)) / second, 1 / 0.554,
              1e-6);
  EXPECT_EQ(seconds(m, op(OperatorClass::attention), with(AttentionKernel::cudnn)), second);
  EXPECT_EQ(attention_residual(m.gpu, shape), 0.05);
  EXPECT_EQ(attention_residual(m.gpu, with(AttentionKernel::flash_attention_3)), 0.1);
  EXPECT_EQ(attention_residual(m.gpu, with(AttentionKernel::triton)), 0.3);
}

// What is published of each generation: newer kernels are faster where they run, and newer GPUs with the kernels made
// for them.
TEST(AttentionCost, GenerationsAreInOrder) {
  using K = AttentionKernel;
  const Machine a100 = load_machine("a100-sxm-80gb"), h100 = load_machine("h100-sxm-80gb"),
                b200 = load_machine("b200-sxm-180gb");
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    for (const Machine* m : {&a100, &h100}) {
      EXPECT_LT(attention(*m, K::flash_attention_2, phase), attention(*m, K::flash_attention_1, phase)) << m->name;
    }
    EXPECT_LT(attention(h100, K::flash_attention_3, phase), attention(h100, K::flash_attention_2, phase));
    EXPECT_LT(attention(h100, K::cudnn, phase), attention(h100, K::flash_attention_2, phase));
    EXPECT_LT(attention(b200, K::flash_attention_4, phase), attention(b200, K::cudnn, phase));
    EXPECT_LT(attention(b200, K::cudnn, phase), attention(b200, K::triton, phase));
    EXPECT_LT(attention(b200, K::flash_attention_4, phase), attention(h100, K::flash_attention_3, phase));
    EXPECT_LT(attention(b200, K::flash_attention_2, phase), attention(h100, K::flash_attention_2, phase));
    EXPECT_EQ(attention(a100, K::flash_attention_3, phase), attention(a100, K::flash_attention_2, phase))
        << "it does not run there; PyTorch takes the second";
  }
}

// Three queries take what 128 do: the block is computed in full.
TEST(AttentionCost, ALongerSequenceNeverCostsLess) {
  for (const char* name : {"a100-sxm-80gb", "h100-sxm-80gb"}) {
    const Machine m = load_machine(name);
    for (const Phase phase : {Phase::forward, Phase::backward})
      for (const std::int64_t causal : {0, 1}) {
        double last = 0;
        for (std::int64_t length = 32; length <= 2048; length += 8) {
          const double now =
              seconds(m, op(OperatorClass::attention, DataType::bf16, phase), {2, 16, 16, length, length, 64, causal});
          EXPECT_GE(now, last) << name << ", length " << length << (causal ? ", causal" : "");
          last = now;
        }
      }
  }
  const Machine m = load_machine("a100-sxm-80gb");
  EXPECT_NEAR(seconds(m, op(OperatorClass::attention), {4, 16, 16, 3, 4096, 64, 0}),
              seconds(m, op(OperatorClass::attention), {4, 16, 16, 128, 4096, 64, 0}), 1e-9);
}

TEST(MemoryCost, WhatL2HoldsIsFasterThanHbm) {
  Machine m = simple();
  m.gpu.l2_bandwidth = 4e12;
  m.gpu.l2_streaming = 0.5;
  m.gpu.l2_kept = 0.5;
  m.gpu.l2_lost = 1.5;
  Op o = op(OperatorClass::elementwise);
  o.bytes = 20'000'000;
  EXPECT_NEAR(seconds(m, o, {}), 20e6 / 2e12, 1e-12) << "half of the L2: all there";
  o.bytes = 40'000'000;
  EXPECT_NEAR(seconds(m, o, {}), 20e6 / 2e12 + 20e6 / 1e12, 1e-12) << "half of it lost";
  o.bytes = 60'000'000;
  EXPECT_NEAR(seconds(m, o, {}), 60e6 / 1e12, 1e-12);
  o.kernels = 3;  // one after the other, each of a third
  EXPECT_NEAR(seconds(m, o, {}), 60e6 / 2e12, 1e-12);
}

TEST(MemoryCost, EveryKernelPaysItsFixedTimeAndTheGapToTheNext) {
  Machine m = simple();
  m.gpu.efficiencies = {{.operator_class = OperatorClass::elementwise, .fixed = microseconds(2)}};
  m.host.stream_gap = microseconds(1);
  Op o = op(OperatorClass::elementwise);
  EXPECT_EQ(kernel_duration(m, o), microseconds(2));
  o.kernels = 4;
  EXPECT_EQ(kernel_duration(m, o), microseconds(4 * 2 + 3));
}

TEST(MemoryCost, BackwardAndWideRowsHaveTheirOwnShares) {
  Machine m = simple();
  KernelEfficiency e{.operator_class = OperatorClass::reduction, .memory = 0.8};
  e.backward_memory = 0.4;
  e.width.points = {{65536, 1}, {131072, 0.5}};
  m.gpu.efficiencies = {e};
  m.gpu.l2_bytes = 0;
  Op o = op(OperatorClass::reduction);
  o.bytes = 800'000'000;
  EXPECT_NEAR(seconds(m, o, {1000, 1000}), 1e-3, 1e-12);
  EXPECT_NEAR(seconds(m, o, {1000, 65536}), 2e-3, 1e-12) << "rows of 128 KiB";
  EXPECT_NEAR(seconds(m, o, {}), 1e-3, 1e-12) << "nobody knows the rows";
  o.phase = Phase::backward;
  EXPECT_NEAR(seconds(m, o, {1000, 1000}), 2e-3, 1e-12);
}

TEST(PriceErrors, ComeFromTheMachinesFile) {
  const Machine m = load_machine("a100-sxm-80gb");
  const auto pricer = make_pricer(m);
  const Shape product_shape{1, 512, 512, 512};
  EXPECT_EQ(pricer->spread(op(OperatorClass::gemm), product_shape).residual, m.gpu.matrix.residual);
  EXPECT_GT(m.gpu.matrix.residual, 0.01);
  EXPECT_GT(pricer->spread(op(OperatorClass::gemm), {}).residual, m.gpu.matrix.residual) << "shape unknown";
  EXPECT_GT(pricer->spread(op(OperatorClass::elementwise), {}).residual, 0);
  EXPECT_EQ(m.price_error(OpKind::kernel, OperatorClass::gemm), m.gpu.matrix.residual);
  EXPECT_EQ(m.price_error(OpKind::host_work, OperatorClass::other), m.host.framework_residual);
  EXPECT_GT(m.price_error(OpKind::collective, OperatorClass::other), 0);
  EXPECT_EQ(m.price_error(OpKind::copy, OperatorClass::other), 0) << "not known";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
