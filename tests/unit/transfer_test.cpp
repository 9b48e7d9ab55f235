// Does a trace that moves to another machine change by predicted ratios, and only where the machine matters?
#include "models/hw/transfer.h"

#include <gtest/gtest.h>

#include "models/hw/machine_file.h"
#include "sim/trace_builder.h"

namespace memwall {
namespace {

Trace one_of_each() {
  TraceBuilder b;
  const auto thread = b.add_thread("main");
  const auto stream = b.add_stream("compute", StreamRole::compute);
  b.trace().place("hbm");
  b.trace().place("host");
  Op kernel;
  kernel.kind = OpKind::kernel;
  kernel.thread = thread;
  kernel.stream = stream;
  kernel.operator_class = OperatorClass::elementwise;
  kernel.duration = microseconds(100);
  kernel.host_cost = microseconds(7);
  b.append(kernel);
  Op copy = kernel;
  copy.kind = OpKind::copy;
  copy.from = b.trace().place("host");
  copy.to = b.trace().place("hbm");
  copy.bytes = 1'000'000'000;
  b.append(copy);
  return std::move(b).finish();
}

TEST(Transfer, AnUnknownKernelScalesWithMemoryBandwidth) {
  const Machine v100 = load_machine("v100-sxm2-16gb"), a100 = load_machine("a100-sxm-40gb");
  const Trace moved = transferred(one_of_each(), v100, a100);
  // 900 GB/s * 0.9 against 1555 GB/s * 0.89.
  EXPECT_NEAR(to_microseconds(moved.ops[0].duration), 100 * (900 * 0.9) / (1555 * 0.89), 1e-3);
  EXPECT_EQ(moved.ops[0].origin, Origin::transferred);
  EXPECT_EQ(moved.ops[0].host_cost, microseconds(7));
  EXPECT_EQ(moved.machine, "a100-sxm-40gb");
  ASSERT_EQ(moved.notes.size(), 1u);
}

TEST(Transfer, ACopyScalesWithItsRoute) {
  const Machine v100 = load_machine("v100-sxm2-16gb"), a100 = load_machine("a100-sxm-40gb");
  const Trace moved = transferred(one_of_each(), v100, a100);
  const double expected = 100 * (1.6e-6 + 1e9 / 26e9) / (2e-6 + 1e9 / 12.35e9);
  EXPECT_NEAR(to_microseconds(moved.ops[1].duration), expected, 1e-3);
}

TEST(Transfer, ThereAndBackIsTheSameTrace) {
  const Machine a = load_machine("v100-sxm2-16gb"), b = load_machine("h100-sxm-80gb");
  const Trace before = one_of_each(), after = transferred(transferred(before, a, b), b, a);
  for (std::size_t i = 0; i < before.ops.size(); ++i)
    EXPECT_NEAR(to_microseconds(after.ops[i].duration), to_microseconds(before.ops[i].duration), 1e-5);
}

}  // namespace
}  // namespace memwall
