// Do offloads of the optimizer, gradients and parameters do what their headers say, in bytes and in
// times worked out by hand?
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/trace/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/offload_chain.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(OffloadOptimizer, CpuAdamIsPricedByDramBytesAndOverlapsWithNothing) {
  const Machine machine = test_machine();
  const Trace base = training_step(1, kGB, false);
  EXPECT_EQ(run(base).end, milliseconds(250));
  const Trace trace = offloaded(base, "offload:what=optimizer");
  const SimulationResult result = run(trace);
  // Gradient down 200 to 300 ms; 250 M parameters x 28 bytes at 100 GB/s = 70 ms; parameters up 100 ms.
  EXPECT_EQ(result.end, milliseconds(470));
  EXPECT_EQ(link_bytes(result, machine, "pcie_d2h"), kGB);
  EXPECT_EQ(link_bytes(result, machine, "pcie_h2d"), kGB);
  EXPECT_EQ(peak(result, machine, "hbm"), 2 * kGB);             // parameter and gradient
  EXPECT_EQ(peak(result, machine, "host"), (1 + 2 + 1) * kGB);  // master copy, two moments, gradient
  for (const Op& op : trace.ops) EXPECT_FALSE(op.kind == OpKind::kernel && op.phase == Phase::optimizer);
}

TEST(OffloadOptimizer, AnotherThreadGoesOnOnlyWhenTheCopiesBehindBackwardWereIssued) {
  // As PyTorch: backward runs on a thread of its own, whose last op makes the gradient.
  Trace base = training_step(1, kGB, false);
  base.threads.push_back({"autograd"});
  std::vector<Op> ops;
  for (const Op& op : base.ops) {
    const bool turn =
        !ops.empty() && op.phase != ops.back().phase && (op.phase == Phase::backward || op.phase == Phase::optimizer);
    if (turn) {
      Op hand_over;
      hand_over.kind = OpKind::hand_over;
      hand_over.phase = op.phase;
      hand_over.thread = op.phase == Phase::backward ? 1 : 0;
      hand_over.target = static_cast<OpId>(ops.size() - 1);
      ops.push_back(hand_over);
    }
    ops.push_back(op);
    ops.back().thread = op.phase == Phase::backward ? 1 : 0;
  }
  base.ops = std::move(ops);
  base.steps[0].last = static_cast<OpId>(base.ops.size());
  ASSERT_TRUE(check(base).empty());
  EXPECT_EQ(run(base).end, milliseconds(250));
  EXPECT_EQ(run(offloaded(base, "offload:what=optimizer")).end, milliseconds(470));
}

TEST(OffloadOptimizer, SixteenBitParametersWriteTwoMoreBytes) {
  const Trace trace = offloaded(training_step(1, kGB, true), "offload:what=optimizer");
  Bytes dram = 0;
  for (const Op& op : trace.ops)
    if (op.kind == OpKind::host_work) dram += op.bytes;
  EXPECT_EQ(dram, 500'000'000 * Bytes{28 + 2});
  // 200 ms of kernels, 100 ms down, 150 ms on the host, 100 ms up.
  EXPECT_EQ(run(trace).end, milliseconds(550));
}

bool has_note(const Trace& t, const std::string& part) {
  return std::ranges::any_of(t.notes, [&](const std::string& n) { return n.find(part) != std::string::npos; });
}

Bytes bytes_of_host_work(const Trace& trace) {
  Bytes bytes = 0;
  for (const Op& op : trace.ops)
    if (op.kind == OpKind::host_work) bytes += op.bytes;
  return bytes;
}

// Two moments of 16 bit, as pure bf16 training keeps them: no master copy, and every parameter travels.
TEST(OffloadOptimizer, StatesOfSixteenBitAreCountedByTheirParameters) {
  const Machine machine = test_machine();
  const Trace trace = offloaded(training_step(2, kGB, true, 2), "offload:what=optimizer");
  EXPECT_TRUE(has_note(trace, "1,000,000,000 parameters of 2 bytes, 4 bytes of states each"));
  EXPECT_EQ(bytes_of_host_work(trace), 1'000'000'000 * Bytes{14});
  const SimulationResult result = run(trace);
  EXPECT_EQ(link_bytes(result, machine, "pcie_d2h"), 2 * kGB);
  EXPECT_EQ(link_bytes(result, machine, "pcie_h2d"), 2 * kGB);
  EXPECT_EQ(peak(result, machine, "host"), (4 + 2 + 2) * kGB);  // states, the host's parameters, gradients
}

// Adam's fp32 moments of 16-bit parameters, one moment of SGD, moments of 8 bit: 2 x states + 3 x the updated copy.
TEST(OffloadOptimizer, OtherStatesMoveTheirOwnBytes) {
  EXPECT_EQ(bytes_of_host_work(offloaded(training_step(1, kGB, true, 4), "offload:what=optimizer")),
            500'000'000 * Bytes{2 * 8 + 3 * 2});
  EXPECT_EQ(bytes_of_host_work(offloaded(training_step(1, kGB, false, 1), "offload:what=optimizer")),
            250'000'000 * Bytes{2 * 4 + 3 * 4});
  EXPECT_EQ(bytes_of_host_work(offloaded(training_step(1, kGB, true, 1), "offload:what=optimizer")),
            500'000'000 * Bytes{2 * 2 + 3 * 2});
}

// An all-gather behind the step says that a rank has updated its part alone, whatever the states' width.
TEST(OffloadOptimizer, ARankOfSeveralUpdatesItsPart) {
  const Machine machine = test_machine();
  for (const int ratio : {2, 6}) {
    const Trace trace = apply_rewriters(training_step(2, kGB, true, ratio),
                                        {parse_policy("zero:stage=1,ranks=4"), parse_policy("offload:what=optimizer")},
                                        machine, *test_pricer(machine));
    EXPECT_TRUE(has_note(trace, "250,000,000 parameters of 2 bytes")) << trace.notes.back();
    EXPECT_EQ(link_bytes(run(trace), machine, "pcie_h2d"), 2 * kGB / 4);
  }
}

// Behind ZeRO's third stage kernels read what was gathered; a parameter is as wide as that.
TEST(OffloadOptimizer, AShardIsAsWideAsWhatIsGatheredOfIt) {
  const Machine machine = test_machine();
  const Trace trace = apply_rewriters(training_step(2, kGB, true, 2),
                                      {parse_policy("zero:stage=3,ranks=4"), parse_policy("offload:what=optimizer")},
                                      machine, *test_pricer(machine));
  EXPECT_TRUE(has_note(trace, "250,000,000 parameters of 2 bytes, 4 bytes of states each")) << trace.notes.back();
}

// Each layer is updated as soon as its gradient is there. `one_phase`: a recorder that cannot tell calls all of it
// optimizer from the first update on.
Trace updated_in_backward(int layers, bool one_phase) {
  Chain c;
  std::vector<StorageId> p, m;
  for (int i = 0; i < layers; ++i) {
    p.push_back(c.b.add_storage((i + 1) * kGB, StorageKind::parameter, "hbm", numbered('p', i), true));
    m.push_back(c.b.add_storage((i + 1) * 2 * kGB, StorageKind::optimizer_state, "hbm", numbered('m', i), true));
    c.kernel(Phase::forward, {p[i]}, {});
  }
  for (int i = layers - 1; i >= 0; --i) {
    const Phase phase = one_phase && i < layers - 1 ? Phase::optimizer : Phase::backward;
    const StorageId g = c.make((i + 1) * kGB, StorageKind::gradient, phase, numbered('g', i));
    c.kernel(phase, {p[i]}, {g});
    c.kernel(Phase::optimizer, {p[i], g, m[i]}, {p[i], m[i]}, milliseconds(50));
    c.drop(g, Phase::optimizer);
  }
  return c.finish();
}

TEST(OffloadOptimizer, InBackwardEachUpdateStandsWhereItsGradientIsMade) {
  const Machine machine = test_machine();
  for (const bool one_phase : {false, true}) {
    const Trace trace = offloaded(updated_in_backward(3, one_phase), "offload:what=optimizer");
    EXPECT_TRUE(has_note(trace, "1,500,000,000 parameters of 4 bytes, 8 bytes of states each")) << trace.notes.back();
    EXPECT_EQ(bytes_of_host_work(trace), 1'500'000'000 * Bytes{28});
    EXPECT_EQ(std::ranges::count(trace.ops, OpKind::host_work, &Op::kind), 3);
    EXPECT_EQ(link_bytes(run(trace), machine, "pcie_h2d"), 6 * kGB);
  }
}

TEST(OffloadOptimizer, RefusesAnUpdateThatBeginsBeforeItsGradient) {
  Chain c;
  const StorageId p = c.b.add_storage(kGB, StorageKind::parameter, "hbm", "p", true);
  const StorageId m = c.b.add_storage(2 * kGB, StorageKind::optimizer_state, "hbm", "m", true);
  c.kernel(Phase::forward, {p}, {});
  c.kernel(Phase::optimizer, {m}, {m});
  const StorageId g = c.make(kGB, StorageKind::gradient, Phase::optimizer, "g");
  c.kernel(Phase::optimizer, {p}, {g});
  c.kernel(Phase::optimizer, {p, g, m}, {p, m});
  c.drop(g, Phase::optimizer);
  const std::string sentence = refusal(c.finish(), "offload:what=optimizer");
  EXPECT_NE(sentence.find("('g') is made only after op"), std::string::npos) << sentence;
}

TEST(OffloadOptimizer, GradientsLeaveTheGpuOnceTheyAreSent) {
  const Machine machine = test_machine();
  for (const Bytes bytes : {kGB, Bytes{1000}}) {  // whatever min_bytes says
    const Trace trace = offloaded(training_step(4, bytes, false), "offload:what=optimizer,buffers=0");
    EXPECT_EQ(peak(run(trace), machine, "hbm"), (4 + 1) * bytes);
    EXPECT_TRUE(has_note(trace, "4 gradients of")) << trace.notes.back();
  }
}

TEST(OffloadOptimizer, SaysWhichGradientsStay) {
  GptShape shape;
  shape.preexisting_gradients = true;
  EXPECT_TRUE(has_note(offloaded(gpt_step(shape), "offload:what=optimizer"), "stay on the GPU beside their copies"));
  shape.preexisting_gradients = false;
  EXPECT_FALSE(has_note(offloaded(gpt_step(shape), "offload:what=optimizer"), "stay on the GPU beside their copies"));
}

TEST(OffloadOptimizer, GradientsGoDownDuringBackward) {
  // b3 .. b1 end at 400, 500, 600; the copies are done at 500, 600, 700; 3 x 70 ms; 3 x 100 ms up.
  EXPECT_EQ(run(offloaded(training_step(3, kGB, false), "offload:what=optimizer")).end, milliseconds(700 + 210 + 300));
}

TEST(OffloadOptimizer, SubGroupsOnNvmeSerialAndPipelined) {
  const Machine machine = test_machine();
  const Trace base = training_step(4, kGB, false);
  // 800 ms of forward and backward, the last gradient down at 900. A sub-group holds the states of
  // 250 M parameters and their master copy, 3 GB: read 750 ms, compute (28 x 250 M + 1 GB) 80 ms, write 1500 ms.
  const SimulationResult serial = run(offloaded(base, "offload:what=optimizer,to=nvme,group=250000000"));
  EXPECT_EQ(serial.end, milliseconds(900 + 4 * (750 + 80 + 1500)));
  EXPECT_EQ(link_bytes(serial, machine, "nvme_read"), 12 * kGB);
  EXPECT_EQ(link_bytes(serial, machine, "nvme_write"), 12 * kGB);
  EXPECT_EQ(peak(serial, machine, "nvme"), 12 * kGB);
  // Two buffers of 3 GB, four gradients, four parameters to send.
  EXPECT_EQ(peak(serial, machine, "host"), (2 * 3 + 4 + 4) * kGB);
  // Reads hide behind writes: first read, first compute, then four writes in a row.
  const SimulationResult pipelined = run(offloaded(base, "offload:what=optimizer,to=nvme,group=250000000,pipeline=1"));
  EXPECT_EQ(pipelined.end, milliseconds(900 + 750 + 80 + 4 * 1500));
}

TEST(OffloadOptimizer, StreamedStatesKeepTheKernelsOnTheGpu) {
  const Machine machine = test_machine();
  const Trace trace = offloaded(training_step(3, kGB, false), "offload:what=optimizer,cpu_adam=0,prefetch=1,buffers=1");
  std::size_t kernels = 0;
  for (const Op& op : trace.ops) kernels += op.kind == OpKind::kernel && op.phase == Phase::optimizer;
  EXPECT_EQ(kernels, 3u);
  const SimulationResult result = run(trace);
  EXPECT_EQ(link_bytes(result, machine, "pcie_h2d"), 6 * kGB);
  EXPECT_EQ(link_bytes(result, machine, "pcie_d2h"), 6 * kGB);
  // States of the first layer arrive from 600 ms (end of backward) to 800; kernel to 850. The second
  // are asked for with the first kernel in sight, so they follow at once, to 1000; kernel to 1050;
  // the third, asked for with the second kernel in sight and after the first's, 1000 to 1200; to 1250; back
  // to the host until 1450.
  EXPECT_EQ(result.end, milliseconds(1450));
}

TEST(OffloadGradients, LeaveAfterBackwardAndReturnForTheOptimizer) {
  const Machine machine = test_machine();
  const Trace trace = offloaded(training_step(4, kGB, false), "offload:what=gradients,buffers=0");
  const SimulationResult result = run(trace);
  EXPECT_EQ(link_bytes(result, machine, "pcie_d2h"), 4 * kGB);
  EXPECT_EQ(link_bytes(result, machine, "pcie_h2d"), 4 * kGB);
  EXPECT_EQ(peak(result, machine, "hbm"), 4 * kGB + 8 * kGB + 4 * kGB);  // they all come back before any is dropped
}

TEST(OffloadGradients, WithACpuOptimizerTheyDoNotReturn) {
  const Machine machine = test_machine();
  const SimulationResult result =
      run(offloaded(training_step(4, kGB, false), "offload:what=optimizer+gradients,buffers=0"));
  EXPECT_EQ(link_bytes(result, machine, "pcie_d2h"), 4 * kGB);
  EXPECT_EQ(link_bytes(result, machine, "pcie_h2d"), 4 * kGB);  // the parameters
  EXPECT_EQ(peak(result, machine, "hbm"), 4 * kGB + kGB);       // parameters and one gradient
}

TEST(OffloadParameters, AreLentForEachUse) {
  const Machine machine = test_machine();
  const Trace trace = offloaded(training_step(4, kGB, false), "offload:what=parameters+optimizer,prefetch=1");
  const SimulationResult result = run(trace);
  // Four in forward; p3 and p2 stay for backward, as no more than one other is used in between; p1
  // and p0 come again. The CPU updates them where they live.
  EXPECT_EQ(link_bytes(result, machine, "pcie_h2d"), 6 * kGB);
  EXPECT_EQ(link_bytes(result, machine, "pcie_d2h"), 4 * kGB);  // gradients
  // Arrival of p0 100 ms, then every kernel waits for nothing: the next parameter arrives beside it.
  // Backward ends at 900, the last gradient is down at 1000, 4 x 70 ms of host work.
  EXPECT_EQ(result.end, milliseconds(1280));
  // At b1: three gradients, whose memory the fifth to follow would take over, one parameter in use, one arriving.
  EXPECT_EQ(peak(result, machine, "hbm"), 5 * kGB);
  EXPECT_EQ(peak(result, machine, "host"), (4 + 8 + 4) * kGB);
}

TEST(OffloadParameters, WithoutPrefetchEveryUseWaits) {
  const Machine machine = test_machine();
  const SimulationResult result =
      run(offloaded(training_step(4, kGB, false), "offload:what=parameters+optimizer,prefetch=0,buffers=0"));
  // p3 alone stays from forward to backward: seven arrivals of 100 ms, eight kernels, four gradients that backward
  // waits for before it takes their memory, 280 ms as above.
  EXPECT_EQ(link_bytes(result, machine, "pcie_h2d"), 7 * kGB);
  EXPECT_EQ(result.end, milliseconds(700 + 800 + 400 + 280));
  EXPECT_EQ(peak(result, machine, "hbm"), 2 * kGB);  // at b0: one parameter and one gradient
}

TEST(OffloadParameters, OnNvmeTheHostWritesTheUpdateOn) {
  const Machine machine = test_machine();
  const SimulationResult result =
      run(offloaded(training_step(2, kGB, false), "offload:what=parameters+optimizer,to=nvme"));
  EXPECT_EQ(link_bytes(result, machine, "nvme_read"), (2 + 6) * kGB);   // lent once each; states and masters
  EXPECT_EQ(link_bytes(result, machine, "nvme_write"), (2 + 6) * kGB);  // updates; states and masters
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
