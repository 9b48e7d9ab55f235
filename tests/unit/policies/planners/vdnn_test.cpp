// Do copies leave and come back where vDNN says, and what does that cost? By hand: kernels of 1 us, copies of 2 us.
#include <gtest/gtest.h>

#include "tests/support/rewrite_checks.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kMap = 20'000;  // 2 us at 10 GB/s

// A chain of `count` layers; every second is a convolution. Backward of a layer reads its input.
Trace chain(std::size_t count) {
  StepProgram p;
  std::vector<StorageId> inputs;
  StorageId x = p.make(kMap, "x0");
  p.op("load", {}, {x});
  std::vector<OpId> forward;
  for (std::size_t i = 0; i < count; ++i) {
    inputs.push_back(x);
    const StorageId y = p.make(kMap, "x" + std::to_string(i + 1));
    forward.push_back(p.op(i % 2 == 0 ? "conv2d" : "tanh", {x}, {y}));
    x = y;
  }
  p.op("loss", {x}, {});
  p.drop(x);
  p.backward();
  for (std::size_t i = count; i-- > 0;) {
    p.op("back", {inputs[i]}, {});
    p.drop(inputs[i]);
  }
  p.optimizer();
  p.op("update", {}, {});
  Trace t = std::move(p).finish();
  t.constants.event_latency = {};
  for (std::size_t i = 0; i < count; i += 2) t.ops[forward[i]].operator_class = OperatorClass::convolution;
  return t;
}

Bytes device_peak(const Trace& t) { return simulated(t).tiers[0].peak_allocated; }

std::size_t copies(const Trace& t, const std::string& from) {
  return static_cast<std::size_t>(std::count_if(
      t.ops.begin(), t.ops.end(), [&](const Op& op) { return op.kind == OpKind::copy && t.places[op.from] == from; }));
}

TEST(Vdnn, AllInputsLeaveAndComeBackOneLayerAhead) {
  const Trace before = chain(4), after = rewritten(before, "vdnn:min_bytes=0");
  EXPECT_EQ(copies(after, "hbm"), 4u);
  EXPECT_EQ(copies(after, "host"), 4u);
  // load 0-1. Layer i computes for 1 us while its input leaves in 2; the layer behind waits: 1-3, 3-5, 5-7, then the
  // fourth and its input 7-9. The loss 9-10. Backward: the last input is fetched 10-12, used 12-13 while the one before
  // comes 12-14; 14-15, 16-17, 18-19. update 19-20.
  EXPECT_EQ(simulated(after).end, microseconds(20));
  EXPECT_EQ(simulated(before).end, microseconds(11));
}

TEST(Vdnn, AtMostTwoMapsAreThereInForward) {
  const Trace before = chain(8), after = rewritten(before, "vdnn:min_bytes=0");
  EXPECT_EQ(device_peak(before), 9 * kMap);
  // In forward a layer's input and output; in backward what is used and what comes.
  EXPECT_EQ(device_peak(after), 2 * kMap);
}

TEST(Vdnn, ConvTakesInputsOfConvolutionsAlone) {
  const Trace before = chain(8), after = rewritten(before, "vdnn:layers=conv,min_bytes=0");
  EXPECT_EQ(copies(after, "hbm"), 4u);
  EXPECT_LT(device_peak(after), device_peak(before));
  EXPECT_LT(simulated(after).end, simulated(rewritten(before, "vdnn:min_bytes=0")).end);
}

TEST(Vdnn, SmallStoragesStay) {
  const Trace before = chain(4);
  EXPECT_EQ(copies(rewritten(before, "vdnn"), "hbm"), 0u) << "20 kB are less than 1 MiB";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
