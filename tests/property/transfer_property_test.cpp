// Whatever the op: there and back is what it was, on its own machine nothing changes, a machine that is faster in every
// respect never makes it slower, and more bandwidth never makes it longer.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "models/hw/kernel_cost.h"
#include "models/hw/machine_file.h"
#include "models/hw/transferred_duration.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct AnyWork {
  Op op;
  Shape shape;
  Duration measured{};
};

AnyWork any_work() {
  AnyWork w;
  w.op.kind = OpKind::kernel;
  w.op.operator_class = static_cast<OperatorClass>(*rc::gen::inRange(0, 10));
  w.op.data_type = *rc::gen::element(DataType::unknown, DataType::fp32, DataType::bf16, DataType::fp16, DataType::tf32);
  w.op.phase = *rc::gen::element(Phase::forward, Phase::backward);
  w.op.kernels = static_cast<std::uint16_t>(*rc::gen::inRange(1, 5));
  if (*rc::gen::arbitrary<bool>()) w.op.bytes = Bytes{1} << *rc::gen::inRange(0, 40);
  if (*rc::gen::arbitrary<bool>()) w.op.flops = static_cast<double>(Bytes{1} << *rc::gen::inRange(0, 50));
  const auto extent = [] { return std::int64_t{1} << *rc::gen::inRange(0, 12); };
  if (w.op.operator_class == OperatorClass::gemm && *rc::gen::arbitrary<bool>())
    w.shape = {extent(), extent(), extent(), extent()}, w.op.flops = 0;  // the shape's
  w.measured = picoseconds(std::int64_t{1000} * *rc::gen::inRange<std::int64_t>(100, 100'000'000));
  return w;
}

TransferredDuration transferred_work(const AnyWork& w, Duration measured, const Machine& from, const Machine& to) {
  return transferred_kernel(measured, {from, w.op, w.shape}, {to, w.op, w.shape});
}

Machine any_machine() {
  return load_machine(*rc::gen::element<std::string>("a100-sxm-40gb", "a100-sxm-80gb", "h100-sxm-80gb",
                                                     "v100-sxm2-16gb", "rtx-2080ti", "mi250"));
}

// By such a factor in all that a kernel uses.
Machine faster(Machine m, double factor) {
  for (PeakRate& peak : m.gpu.peaks) peak.flops *= factor;
  m.links[m.hbm_link].bandwidth *= factor;
  m.gpu.l2_bandwidth *= factor;
  for (KernelEfficiency& e : m.gpu.efficiencies) e.fixed = from_seconds(to_seconds(e.fixed) / factor);
  m.gpu.matrix.start_up = from_seconds(to_seconds(m.gpu.matrix.start_up) / factor);
  m.host.stream_gap = from_seconds(to_seconds(m.host.stream_gap) / factor);
  return m;
}

RC_GTEST_PROP(TransferProperty, OnItsOwnMachineNothingChanges, ()) {
  const AnyWork w = any_work();
  const Machine m = any_machine();
  const TransferredDuration c = transferred_work(w, w.measured, m, m);
  RC_ASSERT(c.duration == w.measured);
  RC_ASSERT(c.error == 0);
}

RC_GTEST_PROP(TransferProperty, AFasterMachineIsNeverSlower, ()) {
  const AnyWork w = any_work();
  const Machine m = any_machine();
  const double factor = 1 + *rc::gen::inRange(0, 400) / 100.0;
  const TransferredDuration c = transferred_work(w, w.measured, m, faster(m, factor));
  RC_ASSERT(c.duration <= w.measured + picoseconds(2));
  // The fixed times of the faster machine are whole picoseconds: of 0.2 us, half a picosecond is 2.5e-6.
  RC_ASSERT(to_seconds(c.duration) >= to_seconds(w.measured) / factor * (1 - 1e-5) - 2e-12);
}

RC_GTEST_PROP(TransferProperty, MoreBandwidthIsNeverLonger, ()) {
  const AnyWork w = any_work();
  const Machine from = any_machine(), to = any_machine();
  Machine wide = to;
  wide.links[wide.hbm_link].bandwidth *= 1 + *rc::gen::inRange(1, 300) / 100.0;
  RC_ASSERT(transferred_work(w, w.measured, from, wide).duration <=
            transferred_work(w, w.measured, from, to).duration + picoseconds(2));
}

// What a roof holds up comes back later than it left, all else as it was. Of unknown bytes, what is inferred from the
// time there may lie on the other side of an L2.
RC_GTEST_PROP(TransferProperty, ThereAndBackIsWhatItWas, ()) {
  AnyWork w = any_work();
  w.op.data_type = DataType::fp32;
  if (memory_bound(w.op.operator_class)) w.op.bytes = Bytes{1} << *rc::gen::inRange(0, 40);
  if (w.op.operator_class == OperatorClass::convolution) w.op.operator_class = OperatorClass::gemm;  // TF32 comes in
  const Machine a = any_machine(), b = any_machine();
  const Duration there = transferred_work(w, w.measured, a, b).duration;
  RC_PRE(there.count() > 1000);
  const double back = to_seconds(transferred_work(w, there, b, a).duration), was = to_seconds(w.measured);
  const double rounding = 1e-5 * was + 1e-9;
  RC_ASSERT(back >= was - rounding);
  if (w.measured > 10 * kernel_duration(a, w.op, w.shape)) RC_ASSERT(back <= was + rounding);  // far above every roof
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
