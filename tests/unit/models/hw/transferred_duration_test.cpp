// Closed forms of each rule by which a measured duration moves to another machine, on machines made for the purpose.
#include "models/hw/transferred_duration.h"

#include <gtest/gtest.h>

#include "models/hw/kernel_cost.h"
#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "models/hw/transfer_errors.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const Shape kNoShape;

// 1 TB/s of HBM, L2 of 10 MB that serves nothing beyond itself, 10 TFLOP/s, 2 us of fixed time.
Machine simple(double hbm = 1e12, double peak = 1e13, int fixed_us = 2) {
  Machine m;
  m.name = "simple";
  m.links.push_back({.name = "hbm", .bandwidth = hbm});
  m.gpu.multiprocessors = 100;
  m.gpu.peaks = {{DataType::fp32, peak}};
  KernelEfficiency e;
  e.fixed = microseconds(fixed_us);
  m.gpu.efficiencies = {e};
  return m;
}

Op kernel(OperatorClass c, Bytes bytes, double flops = 0) {
  Op op;
  op.kind = OpKind::kernel;
  op.operator_class = c;
  op.data_type = DataType::fp32;
  op.bytes = bytes;
  op.flops = flops;
  return op;
}

TransferredDuration transferred_work(double us, const Op& op, const Machine& from, const Machine& to,
                                     const Shape& shape = kNoShape) {
  return transferred_kernel(from_microseconds(us), {from, op, shape}, {to, op, shape});
}

double transferred_us(double us, const Op& op, const Machine& from, const Machine& to) {
  return to_microseconds(transferred_work(us, op, from, to).duration);
}

TEST(TransferredDuration, AMemoryBoundKernelMovesByBandwidth) {
  const Op op = kernel(OperatorClass::elementwise, 100'000'000);  // 100 us at 1 TB/s
  const Machine slow = simple(1e12), fast = simple(4e12);
  EXPECT_NEAR(transferred_us(102, op, slow, fast), 27, 1e-6) << "as it was priced: 2 us + a quarter of 100";
  EXPECT_NEAR(transferred_us(62, op, slow, fast), 27 - 10, 1e-6) << "the work went faster: 2 us + a quarter of 60";
  EXPECT_NEAR(transferred_us(204, op, slow, fast), 54, 1e-6) << "all of it went half as fast";
}

TEST(TransferredDuration, ALaunchBoundKernelMovesByItsFixedTime) {
  const Machine from = simple(1e12, 1e13, 2), to = simple(8e12, 8e13, 1);
  const Op op = kernel(OperatorClass::elementwise, 1000);
  EXPECT_NEAR(transferred_us(1.5, op, from, to), 0.75, 1e-6);
  EXPECT_EQ(transferred_work(1.5, op, from, to).rule, TransferRule::launch);
  EXPECT_NEAR(transferred_us(3, op, from, to), 1.5, 1e-2) << "priced at 2.001 us, nearly all of it fixed";
  EXPECT_NEAR(transferred_us(1.5, kernel(OperatorClass::other, 0), from, to), 0.75, 1e-6)
      << "unknown work, and no time for it";
}

TEST(TransferredDuration, AProductMovesByWhatItsShapeIsPricedAt) {
  const Machine a = load_machine("a100-sxm-80gb"), h = load_machine("h100-sxm-80gb");
  Op op = kernel(OperatorClass::gemm, 0);
  op.data_type = DataType::bf16;
  const Shape shape{1, 4096, 4096, 4096};
  const double old = to_microseconds(kernel_duration(a, op, shape)),
               now = to_microseconds(kernel_duration(h, op, shape));
  const TransferredDuration c = transferred_kernel(from_microseconds(2 * old), {a, op, shape}, {h, op, shape});
  EXPECT_NEAR(to_microseconds(c.duration), 2 * now, 1e-5 * now) << "half of what the model attains, on both";
  EXPECT_EQ(c.rule, TransferRule::work);
  const Shape wave{1, 128 * 108, 128, 4096}, one_more{1, 128 * 109, 128, 4096};  // an A100 has 108 multiprocessors
  const auto ratio = [&](const Shape& s) {
    return to_seconds(transferred_kernel(microseconds(1000), {h, op, s}, {a, op, s}).duration);
  };
  EXPECT_GT(ratio(one_more) / ratio(wave), 1.3) << "a second wave on the A100, none on the H100's 132";
}

TEST(TransferredDuration, AConvolutionInFp32GoesToTf32AndBack) {
  Machine volta = simple(1e12, 1e13), ampere = simple(1e12, 1e13);
  ampere.gpu.peaks.push_back({DataType::tf32, 8e13});
  const Op convolution = kernel(OperatorClass::convolution, 0, 1e9), product = kernel(OperatorClass::gemm, 0, 1e9);
  EXPECT_NEAR(transferred_us(102, convolution, volta, ampere), 2 + 100.0 / 8, 1e-6);
  EXPECT_NEAR(transferred_us(102, product, volta, ampere), 102, 1e-6) << "PyTorch's products stay in fp32";
  Op in_tf32 = convolution;
  in_tf32.data_type = DataType::tf32;
  EXPECT_NEAR(transferred_us(2 + 100.0 / 8, in_tf32, ampere, volta), 102, 1e-6) << "no TF32 there";
}

TEST(TransferredDuration, UnknownWorkOfMatrixClassesLiesBetweenTheRoofs) {
  const Machine from = simple(1e12, 1e13), to = simple(2e12, 8e13);
  const TransferredDuration c = transferred_work(102, kernel(OperatorClass::gemm, 0), from, to);
  EXPECT_NEAR(to_microseconds(c.duration), 2 + 100 / 4.0, 1e-6) << "between a half and an eighth";
  EXPECT_EQ(c.rule, TransferRule::between);
  EXPECT_GT(c.error, 0.9) << "the interval reaches both";
  EXPECT_EQ(transferred_work(102, kernel(OperatorClass::elementwise, 0), from, to).rule, TransferRule::bandwidth);
  EXPECT_NEAR(transferred_us(102, kernel(OperatorClass::elementwise, 0), from, to), 52, 1e-6);
}

TEST(TransferredDuration, NothingGoesFasterThanTheRoof) {
  const Machine from = simple(1e12, 1e13), to = simple(1e12, 2e13);
  const Op op = kernel(OperatorClass::gemm, 100'000'000, 1e9);  // 100 us of arithmetic and of memory
  EXPECT_NEAR(transferred_us(102, op, from, to), 102, 1e-6) << "memory holds it";
  EXPECT_NEAR(transferred_us(52, op, from, to), 52, 1e-6)
      << "it was twice as fast as the old roof: its bytes are fewer";
  Machine half = simple(1e12, 1e13), quick = simple(1e12, 4e13);
  half.gpu.efficiencies.front().compute = quick.gpu.efficiencies.front().compute = 0.5;
  const Op twice_as_good = kernel(OperatorClass::gemm, 60'000'000, 1e9);  // priced at 202 us, its peak allows 100
  EXPECT_NEAR(transferred_us(102, twice_as_good, half, quick), 60, 1e-6)
      << "2 + 30 us by the ratio, but its bytes take 60";
}

TEST(TransferredDuration, WhereOneL2HoldsWhatTheOtherDoesNotBothAnswersAreMet) {
  Machine small = simple(), large = simple();
  for (Machine* m : {&small, &large}) {
    m->gpu.l2_bandwidth = 4e12;
    m->gpu.l2_streaming = 1;
    m->gpu.l2_kept = 0.9;
    m->gpu.l2_lost = 1;
  }
  small.gpu.l2_bytes = 10'000'000;
  large.gpu.l2_bytes = 200'000'000;
  const TransferredDuration c = transferred_work(102, kernel(OperatorClass::elementwise, 100'000'000), small, large);
  EXPECT_NEAR(to_microseconds(c.duration), 2 + 100 / 2.0, 1e-6) << "between all from HBM and all from L2";
  EXPECT_GT(c.error, 0.9);
}

TEST(TransferredDuration, NearerMachinesErrLess) {
  const Op op = kernel(OperatorClass::elementwise, 100'000'000);
  const double far = transferred_work(102, op, simple(1e12), simple(2e12)).error;
  EXPECT_NEAR(transferred_work(102, op, simple(1e12), simple(8e12)).error, far, 0.05)
      << "beyond a factor of two it is no more";
  EXPECT_NEAR(transferred_work(102, op, simple(1e12), simple(1.19e12)).error, far / 4, 0.05);
  EXPECT_EQ(transferred_work(102, op, simple(), simple()).error, 0);
}

TEST(TransferredDuration, EveryClassStatesAnErrorAndItsSource) {
  for (int c = 0; c < 10; ++c) {
    const auto operator_class = static_cast<OperatorClass>(c);
    EXPECT_GT(kernel_transfer_error(TransferRule::work, operator_class), 0) << to_string(operator_class);
    const TransferRule rule = memory_bound(operator_class) ? TransferRule::bandwidth : TransferRule::between;
    EXPECT_GE(kernel_transfer_error(rule, operator_class), kernel_transfer_error(TransferRule::work, operator_class));
  }
  for (const TransferError& e : transfer_errors()) EXPECT_TRUE(e.error > 0 && !e.source.empty());
  EXPECT_GT(collective_transfer_error(false), collective_transfer_error(true));
  EXPECT_GT(copy_transfer_error(), 0);
}

TEST(TransferredDuration, CopiesMoveByLatencyOrByBandwidth) {
  const Machine a = load_machine("v100-sxm2-16gb"), h = load_machine("h100-sxm-80gb");
  const auto old = make_pricer(a), now = make_pricer(h);
  for (const Bytes bytes : {Bytes{4}, Bytes{1} << 30}) {
    Op op;
    op.kind = OpKind::copy;
    op.bytes = bytes;
    const Duration measured = old->copy("host", "hbm", bytes, false);
    const TransferredDuration c = transferred_copy(measured, op, "host", "hbm", {a, *old}, {h, *now});
    EXPECT_NEAR(to_seconds(c.duration), to_seconds(now->copy("host", "hbm", bytes, false)), 2e-12);
  }
}

TEST(TransferredDuration, ACopyIsNoFasterThanItsRouteOrByNoMoreThanItWas) {
  const Machine a = load_machine("v100-sxm2-16gb"), h = load_machine("h100-sxm-80gb");
  const auto old = make_pricer(a), now = make_pricer(h);
  Op op;
  op.kind = OpKind::copy;
  op.bytes = 10'000'000;
  const auto at_route = [&](const Machine& m) {
    return static_cast<double>(op.bytes) / m.route(m.tier("host"), m.tier("hbm"), false)->bandwidth;
  };
  for (const double share : {1.0, 0.8}) {
    const Duration measured = from_seconds(share * at_route(a));
    const TransferredDuration c = transferred_copy(measured, op, "host", "hbm", {a, *old}, {h, *now});
    EXPECT_GE(to_seconds(c.duration), share * at_route(h) * (1 - 1e-6)) << share;
  }
}

TEST(TransferredDuration, ACollectiveOfUnknownBytesMovesAsTheMessageThatWouldHaveTakenAsLong) {
  const Machine a = load_machine("a100-sxm-80gb"), h = load_machine("h200-sxm-141gb");
  const auto old = make_pricer(a), now = make_pricer(h);
  Op op;
  op.kind = OpKind::collective;
  op.collective = CollectiveKind::all_reduce;
  constexpr Bytes kMessage = Bytes{1} << 30;
  const Duration measured = old->collective(op.collective, kMessage, 8);
  const TransferredDuration unknown = transferred_collective(measured, op, {"", 8, {}}, {a, *old}, {h, *now});
  op.bytes = old->wire_bytes(op.collective, kMessage, 8);
  const TransferredDuration known = transferred_collective(measured, op, {"", 8, {}}, {a, *old}, {h, *now});
  EXPECT_NEAR(to_seconds(known.duration), to_seconds(now->collective(op.collective, kMessage, 8)), 1e-9);
  EXPECT_NEAR(to_seconds(unknown.duration), to_seconds(known.duration), 1e-3 * to_seconds(known.duration));
  EXPECT_GT(unknown.error, known.error);
  EXPECT_EQ(transferred_collective(measured, op, {"", 100000, {}}, {a, *old}, {simple(), *now}).rule, TransferRule::unchanged);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
