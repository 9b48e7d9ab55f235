// Do prices follow the closed forms that the headers state?
#include "models/hw/pricer.h"

#include <gtest/gtest.h>

#include "models/hw/kernel_cost.h"
#include "models/hw/machine_file.h"
#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Round numbers, so that every expectation can be worked out by hand.
Machine simple() {
  Machine m;
  m.name = "simple";
  m.gpu.l2_bytes = 1'000'000;
  m.gpu.l2_bandwidth = 4e12;
  m.gpu.peaks = {{DataType::fp32, 10e12}, {DataType::fp16, 100e12}};
  m.gpu.efficiencies = {{OperatorClass::other, 1, 1, microseconds(1)},
                        {OperatorClass::gemm, 0.5, 0.8, microseconds(2)}};
  m.host.optimizer_bandwidth = 20e9;
  m.tiers = {{.name = "hbm"}, {.name = "host", .tier_class = TierClass::host}};
  m.links = {{.name = "hbm", .bandwidth = 1e12}, {.name = "host_dram", .bandwidth = 100e9}};
  m.dram_link = 1;
  Route in{.from = 1, .to = 0, .links = {1, 0}, .bandwidth = 10e9, .latency = microseconds(5), .efficiency = {}};
  in.efficiency.points = {{1024, 0.5}, {1024 * 1024, 1}};
  m.routes = {in};
  Fabric ring{.name = "nvlink",
              .links = {0},
              .bus_bandwidth = 100e9,
              .step_latency = microseconds(1),
              .base_latency = microseconds(10),
              .max_ranks = 8,
              .efficiency = {}};
  m.fabrics = {ring};
  return m;
}

Op op(OperatorClass c, DataType t, double flops, Bytes bytes) {
  Op o;
  o.kind = OpKind::kernel;
  o.operator_class = c;
  o.data_type = t;
  o.flops = flops;
  o.bytes = bytes;
  return o;
}

TEST(KernelCost, ComputeBoundIsFlopsOverReachablePeak) {
  // 100 GFLOP at 100 TFLOP/s * 0.5 = 2 ms, and 2 us fixed.
  EXPECT_EQ(kernel_duration(simple(), op(OperatorClass::gemm, DataType::fp16, 100e9, 0)), microseconds(2002));
}

TEST(KernelCost, MemoryBoundIsBytesOverReachableBandwidth) {
  // 80 MB at 1 TB/s * 0.8 = 100 us; far beyond the L2 of 1 MB.
  EXPECT_EQ(kernel_duration(simple(), op(OperatorClass::gemm, DataType::fp16, 1, 80'000'000)), microseconds(102));
}

TEST(KernelCost, WhatFitsInTheCacheIsFaster) {
  // Half of the L2: half of the bytes miss, 0.25 MB at 1 TB/s = 0.25 us against 0.125 us of L2.
  EXPECT_EQ(kernel_duration(simple(), op(OperatorClass::other, DataType::fp32, 0, 500'000)), nanoseconds(1250));
}

TEST(KernelCost, OnlyMatrixClassesUseTensorRates) {
  const Gpu gpu = simple().gpu;
  EXPECT_EQ(peak_flops(gpu, DataType::fp16, OperatorClass::gemm), 100e12);
  EXPECT_EQ(peak_flops(gpu, DataType::fp16, OperatorClass::elementwise), 10e12);
  EXPECT_EQ(peak_flops(gpu, DataType::bf16, OperatorClass::gemm), 10e12) << "no bf16 here: fp32 arithmetic";
}

TEST(KernelCost, TheLastWaveIsPaidInFull) {
  Op o = op(OperatorClass::gemm, DataType::fp16, 100e9, 0);
  o.waves = 2.5F;
  EXPECT_EQ(kernel_duration(simple(), o), microseconds(2402));  // 2 ms * 3 / 2.5
}

TEST(Pricer, CopyIsLatencyPlusBytesOverReachedBandwidth) {
  const auto pricer = make_pricer(simple());
  EXPECT_EQ(pricer->copy("host", "hbm", 100'000'000, false), microseconds(10'005));
  EXPECT_EQ(pricer->copy("host", "hbm", 1000, false), nanoseconds(5200));  // half of 10 GB/s
  EXPECT_EQ(pricer->copy("host", "hbm", 0, false), microseconds(5));
}

TEST(Pricer, UnknownPlacesAndRoutesAreRefused) {
  const auto pricer = make_pricer(simple());
  EXPECT_THROW(pricer->copy("hbm", "host", 1, false), UsageError);
  try {
    pricer->copy("host", "hbn", 1, false);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("(nearest: \"hbm\")"), std::string::npos) << error.what();
  }
}

TEST(Pricer, CollectivesFollowTheRing) {
  const auto pricer = make_pricer(simple());
  const Bytes s = 800'000'000;
  // Of 4 ranks: 3/4 * 800 MB / 100 GB/s = 6 ms, 3 steps of 1 us, base 10 us.
  EXPECT_EQ(pricer->wire_bytes(CollectiveKind::all_gather, s, 4), 600'000'000);
  EXPECT_EQ(pricer->collective(CollectiveKind::all_gather, s, 4), microseconds(6013));
  EXPECT_EQ(pricer->collective(CollectiveKind::reduce_scatter, s, 4), microseconds(6013));
  // Twice for an all-reduce.
  EXPECT_EQ(pricer->wire_bytes(CollectiveKind::all_reduce, s, 4), 1'200'000'000);
  EXPECT_EQ(pricer->collective(CollectiveKind::all_reduce, s, 4), microseconds(12'016));
  EXPECT_EQ(pricer->wire_bytes(CollectiveKind::broadcast, s, 4), s);
  EXPECT_EQ(pricer->collective(CollectiveKind::barrier, 0, 4), microseconds(16));
}

TEST(Pricer, OneRankTalksToNobody) {
  const auto pricer = make_pricer(simple());
  EXPECT_EQ(pricer->collective(CollectiveKind::all_reduce, 1'000'000, 1), Duration{});
  EXPECT_EQ(pricer->wire_bytes(CollectiveKind::all_reduce, 1'000'000, 1), 0);
  EXPECT_THROW(pricer->collective(CollectiveKind::all_reduce, 1, 9), UsageError) << "beyond the fabric";
}

TEST(Pricer, HostWorkIsBoundByTheOptimizerAndByDram) {
  Machine m = simple();
  EXPECT_EQ(make_pricer(m)->host_memory_work(20'000'000'000), from_seconds(1));
  m.links[1].bandwidth = 10e9;
  EXPECT_EQ(make_pricer(m)->host_memory_work(20'000'000'000), from_seconds(2));
}

TEST(Pricer, ScalingKeepsTheMeasuredRatio) {
  const auto pricer = make_pricer(simple());
  Op measured = op(OperatorClass::other, DataType::fp32, 0, 99'000'000);  // predicted 100 us
  measured.duration = microseconds(150);
  // Predicted for 199 MB: 200 us; twice the old prediction, so twice the measured time.
  EXPECT_EQ(pricer->scaled(measured, 199'000'000, 0), microseconds(300));
  measured.bytes = 0;
  EXPECT_EQ(pricer->scaled(measured, 199'000'000, 0), microseconds(200)) << "no ratio without old work";
}

TEST(Pricer, SmallKernelsOfPublishedTablesWithinAFifth) {
  // gpu-benches small kernels, A100 80 GB, best block size: bytes moved and time per kernel.
  Machine a100 = load_machine("a100-sxm-40gb", {"gpu.hbm.bandwidth=1.935 TB/s"});
  for (const auto& [elements, us] : {std::pair{1'930'430, 14.72}, {8'997'629, 86.93}}) {
    // A streaming kernel of its own, not one of a framework: class memory.
    const Duration t = kernel_duration(a100, op(OperatorClass::memory, DataType::fp64, 0, Bytes{16} * elements));
    EXPECT_NEAR(to_microseconds(t) / us, 1, 0.2) << elements;
  }
}

TEST(Pricer, AllReduceOfPublishedTablesWithinAFifth) {
  // nccl-tests on eight A100 (ml-engineering): 8.389 MB 133.5 us, 67 MB 684.6 us, 1 GiB 8203.9 us.
  const auto pricer = make_pricer(load_machine("a100-sxm-40gb"));
  for (const auto& [bytes, us] : {std::pair{MiB(8), 133.5}, {MiB(64), 684.6}, {GiB(1), 8203.9}})
    EXPECT_NEAR(to_microseconds(pricer->collective(CollectiveKind::all_reduce, bytes, 8)) / us, 1, 0.2) << bytes;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
