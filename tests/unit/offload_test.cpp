// Does `offload` do what its headers say, in bytes and in times worked out by hand?
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "sim/error.h"
#include "sim/registry.h"
#include "sim/simulation.h"
#include "sim/trace_builder.h"
#include "sim/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace {

constexpr Bytes kGB = 1'000'000'000;

Duration milliseconds(std::int64_t n) { return microseconds(1000 * n); }

// A program written by hand: one thread, one compute stream, every kernel 100 ms.
struct Chain {
  TraceBuilder b;

  Chain() {
    b.trace().name = "chain";
    b.trace().knowledge = {true, true, true, false, false};
    b.trace().constants.event_latency = Duration{};
    b.add_thread("main");
    b.add_stream("compute", StreamRole::compute);
    Op mark;
    b.append(mark);
  }

  StorageId make(Bytes bytes, StorageKind kind, Phase phase, const std::string& label) {
    const StorageId id = b.add_storage(bytes, kind, "hbm", label);
    Op op;
    op.kind = OpKind::alloc;
    op.target = id;
    op.phase = phase;
    b.append(op);
    return id;
  }

  void drop(StorageId id, Phase phase) {
    Op op;
    op.kind = OpKind::free;
    op.target = id;
    op.phase = phase;
    b.append(op);
  }

  void kernel(Phase phase, const std::vector<StorageId>& reads, const std::vector<StorageId>& writes,
              Duration duration = milliseconds(100)) {
    std::vector<Use> uses;
    for (const StorageId id : reads) uses.push_back({id, TraceBuilder::kLatest, Access::read});
    for (const StorageId id : writes) uses.push_back({id, 0, Access::write});
    Op op;
    op.kind = OpKind::kernel;
    op.phase = phase;
    op.duration = duration;
    b.append(op, uses);
  }

  Trace finish() {
    b.trace().steps = {{"step", 0, static_cast<OpId>(b.trace().ops.size())}};
    return std::move(b).finish();
  }
};

// f1 .. fn make one activation each and read the one before; bn .. b1 read one each and free it.
Trace activation_chain(int layers, Bytes bytes = kGB) {
  Chain c;
  std::vector<StorageId> a;
  for (int i = 0; i < layers; ++i) {
    a.push_back(c.make(bytes, StorageKind::activation, Phase::forward, "a" + std::to_string(i + 1)));
    c.kernel(Phase::forward, i > 0 ? std::vector{a[i - 1]} : std::vector<StorageId>{}, {a[i]});
  }
  for (int i = layers - 1; i >= 0; --i) {
    c.kernel(Phase::backward, {a[i]}, {});
    c.drop(a[i], Phase::backward);
  }
  return c.finish();
}

// One or more layers of a parameter, its gradient, and Adam's states; 4 bytes per element of a
// parameter, or 2 with an fp32 master copy. Forward in order, backward in reverse, then Adam.
Trace training_step(int layers, Bytes parameter_bytes, bool half) {
  Chain c;
  std::vector<StorageId> p, g, m;
  for (int i = 0; i < layers; ++i) {
    p.push_back(c.b.add_storage(parameter_bytes, StorageKind::parameter, "hbm", "p" + std::to_string(i), true));
    m.push_back(c.b.add_storage(parameter_bytes * (half ? 6 : 2), StorageKind::optimizer_state, "hbm", "m" + std::to_string(i), true));
  }
  for (int i = 0; i < layers; ++i) c.kernel(Phase::forward, {p[i]}, {});
  g.resize(layers);
  for (int i = layers - 1; i >= 0; --i) {
    g[i] = c.make(parameter_bytes, StorageKind::gradient, Phase::backward, "g" + std::to_string(i));
    c.kernel(Phase::backward, {p[i]}, {g[i]});
  }
  for (int i = 0; i < layers; ++i) c.kernel(Phase::optimizer, {p[i], g[i], m[i]}, {p[i], m[i]}, milliseconds(50));
  for (int i = 0; i < layers; ++i) c.drop(g[i], Phase::optimizer);
  Trace t = c.finish();
  if (half)
    for (Op& op : t.ops) op.data_type = DataType::bf16;
  return t;
}

Trace offloaded(const Trace& trace, const std::string& policy, const Machine& machine = test_machine()) {
  return apply_rewriters(trace, {parse_policy(policy)}, machine, *test_pricer(machine));
}

SimulationResult run(const Trace& trace, const Machine& machine = test_machine()) {
  SimulationOptions options;
  options.allocator = "ideal";
  return simulate(trace, machine, options);
}

Bytes link_bytes(const SimulationResult& result, const Machine& machine, const std::string& name) {
  return result.links[machine.link(name)].bytes;
}
Bytes peak(const SimulationResult& result, const Machine& machine, const std::string& tier) {
  return result.tiers[machine.tier(tier)].peak_usage.requested;  // pinned memory is rounded up to a power of two
}

std::string refusal(const Trace& trace, const std::string& policy, const Machine& machine = test_machine()) {
  try {
    offloaded(trace, policy, machine);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(OffloadActivations, OverlapsCopiesWithComputeAndWaitsForTheLastOne) {
  const Machine machine = test_machine();
  const Trace base = activation_chain(6);
  EXPECT_EQ(run(base).end, milliseconds(1200));
  EXPECT_EQ(peak(run(base), machine, "hbm"), 6 * kGB);
  // a6 stays (in flight when backward begins). a_i is copied during f(i+2), the copy of a5 ends at
  // 700 ms; from then on the next activation arrives while the present one is used.
  const Trace trace = offloaded(base, "offload:what=activations,buffers=1,prefetch=1");
  const SimulationResult result = run(trace);
  EXPECT_EQ(result.end, milliseconds(1300));
  EXPECT_EQ(link_bytes(result, machine, "pcie_d2h"), 5 * kGB);
  EXPECT_EQ(link_bytes(result, machine, "pcie_h2d"), 5 * kGB);
  // f(k) makes a(k) while a(k-1) is read and a(k-2) is on its way out.
  EXPECT_EQ(peak(result, machine, "hbm"), 3 * kGB);
  EXPECT_EQ(peak(result, machine, "host"), 5 * kGB);
}

TEST(OffloadActivations, WithoutBuffersAndPrefetchNothingOverlaps) {
  // f1, f2, then copy and kernel in turn up to f6, two copies (a5, a6), then six times copy and kernel.
  const SimulationResult result = run(offloaded(activation_chain(6), "offload:what=activations,buffers=0,prefetch=0"));
  EXPECT_EQ(result.end, milliseconds(200 + 4 * 200 + 200 + 6 * 200));
  EXPECT_EQ(peak(result, test_machine(), "hbm"), 2 * kGB);
}

TEST(OffloadActivations, PageableCopiesBlockTheHostAndTheComputeStream) {
  const Trace trace = offloaded(activation_chain(6), "offload:what=activations,pinned=0");
  // 12 kernels of 100 ms and 12 copies of 200 ms, one after the other.
  EXPECT_EQ(run(trace).end, milliseconds(12 * 100 + 12 * 200));
  for (const Op& op : trace.ops) {
    if (op.kind != OpKind::copy) continue;
    EXPECT_TRUE(op.pageable);
    EXPECT_EQ(op.wait_for, WaitFor::own_op);
  }
}

TEST(OffloadActivations, APeerOverNvlinkIsFasterThanTheHostOrAPeerOverPcie) {
  const Trace base = activation_chain(6);
  const std::string policy = "offload:what=activations,buffers=1,to=peer";
  const Machine nvlink = test_machine(), pcie = test_machine_without_nvlink();
  const SimulationResult fast = run(offloaded(base, policy, nvlink), nvlink);
  const SimulationResult slow = run(offloaded(base, policy, pcie), pcie);
  EXPECT_EQ(fast.end, milliseconds(1210));  // 1 GB at 100 GB/s shows once
  EXPECT_EQ(slow.end, milliseconds(1300));  // 1 GB at 10 GB/s
  EXPECT_EQ(run(offloaded(base, "offload:what=activations,buffers=1")).end, milliseconds(1300));
  EXPECT_EQ(link_bytes(fast, nvlink, "nvlink_out"), 5 * kGB);
  EXPECT_EQ(peak(fast, nvlink, "peer_hbm"), 5 * kGB);
  EXPECT_EQ(link_bytes(fast, nvlink, "pcie_d2h"), 0);
}

TEST(OffloadActivations, NvmeIsReachedThroughARingOfPinnedHostBuffers) {
  const Machine machine = test_machine();
  const Trace trace = offloaded(activation_chain(6), "offload:what=activations,buffers=1,to=nvme,staging=2");
  const SimulationResult result = run(trace);
  EXPECT_EQ(link_bytes(result, machine, "nvme_write"), 5 * kGB);
  EXPECT_EQ(link_bytes(result, machine, "nvme_read"), 5 * kGB);
  EXPECT_EQ(peak(result, machine, "nvme"), 5 * kGB);
  EXPECT_EQ(peak(result, machine, "host"), 4 * kGB);  // two buffers each way
  // Writes (2 GB/s) stand one behind the other, 300 to 2800 ms. A third copy out waits for a buffer:
  // a3 800 to 900, a4 1300 to 1400, a5 1800 to 1900 ms, and b6 for its memory: 1900 to 2000. a5 can
  // be read (4 GB/s) at 2800, is on the device at 3150; the others follow every 250 ms: b1 begins at 4150.
  EXPECT_EQ(result.end, milliseconds(4250));
}

TEST(OffloadActivations, FractionTakesTheFirstAndMinBytesLeavesTheSmall) {
  const Machine machine = test_machine();
  const Trace half = offloaded(activation_chain(6), "offload:what=activations,buffers=0,fraction=0.5");
  EXPECT_EQ(link_bytes(run(half), machine, "pcie_d2h"), 3 * kGB);
  const std::string sentence = refusal(activation_chain(6, 1000), "offload:what=activations");
  EXPECT_NE(sentence.find("6 smaller ones"), std::string::npos) << sentence;
}

TEST(OffloadActivations, AnInPlaceWriteInBackwardFollowsToTheNewStorage) {
  Chain c;
  const StorageId a = c.make(kGB, StorageKind::activation, Phase::forward, "a");
  c.kernel(Phase::forward, {}, {a});
  c.kernel(Phase::backward, {a}, {a});
  c.kernel(Phase::backward, {a}, {});
  c.drop(a, Phase::backward);
  const Trace base = c.finish();
  const Trace trace = offloaded(base, "offload:what=activations,buffers=0");
  const std::vector<std::uint64_t> before = producer_hashes(base), after = producer_hashes(trace);
  std::vector<std::uint64_t> kept;
  for (OpId id = 0; id < trace.ops.size(); ++id)
    if (!trace.ops[id].added) kept.push_back(after[id]);
  std::vector<std::uint64_t> original;
  for (OpId id = 0; id < base.ops.size(); ++id)
    if (base.ops[id].kind != OpKind::free) original.push_back(before[id]);
  std::erase(kept, 0u);
  std::erase(original, 0u);
  EXPECT_EQ(kept, original);
  std::size_t on_new = 0;
  for (const Op& op : trace.ops)
    for (const Use& use : trace.uses_of(op))
      if (op.phase == Phase::backward && op.kind == OpKind::kernel) on_new += use.storage != a;
  EXPECT_EQ(on_new, 3u);  // read, write, read
}

TEST(OffloadActivations, DoesNotFitWithoutAndFitsWith) {
  Machine machine = test_machine();
  machine.tiers[0].capacity = 4 * kGB;
  const SimulationResult without = run(activation_chain(6), machine);
  EXPECT_FALSE(without.fits);
  EXPECT_EQ(without.tiers[0].missing, 2 * kGB);
  const SimulationResult with = run(offloaded(activation_chain(6), "offload:what=activations,buffers=1", machine), machine);
  EXPECT_TRUE(with.fits);
  EXPECT_EQ(with.tiers[0].missing, 0);
}

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
  EXPECT_EQ(peak(result, machine, "hbm"), 2 * kGB);       // parameter and gradient
  EXPECT_EQ(peak(result, machine, "host"), (1 + 2 + 1) * kGB);  // master copy, two moments, gradient
  for (const Op& op : trace.ops) EXPECT_FALSE(op.kind == OpKind::kernel && op.phase == Phase::optimizer);
}

TEST(OffloadOptimizer, AnotherThreadGoesOnOnlyWhenTheCopiesBehindBackwardWereIssued) {
  // As PyTorch: backward runs on a thread of its own, whose last op makes the gradient.
  Trace base = training_step(1, kGB, false);
  base.threads.push_back({"autograd"});
  std::vector<Op> ops;
  for (const Op& op : base.ops) {
    const bool turn = !ops.empty() && op.phase != ops.back().phase && (op.phase == Phase::backward || op.phase == Phase::optimizer);
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
  const SimulationResult result = run(offloaded(training_step(4, kGB, false), "offload:what=optimizer+gradients,buffers=0"));
  EXPECT_EQ(link_bytes(result, machine, "pcie_d2h"), 4 * kGB);
  EXPECT_EQ(link_bytes(result, machine, "pcie_h2d"), 4 * kGB);  // the parameters
  EXPECT_EQ(peak(result, machine, "hbm"), 4 * kGB + kGB);       // parameters and one gradient
}

TEST(OffloadParameters, AreLentForEachUse) {
  const Machine machine = test_machine();
  const Trace trace = offloaded(training_step(4, kGB, false), "offload:what=parameters+optimizer,prefetch=1,buffers=0");
  const SimulationResult result = run(trace);
  // Four in forward; p3 and p2 stay for backward, as no more than one other is used in between; p1
  // and p0 come again. The CPU updates them where they live.
  EXPECT_EQ(link_bytes(result, machine, "pcie_h2d"), 6 * kGB);
  EXPECT_EQ(link_bytes(result, machine, "pcie_d2h"), 4 * kGB);  // gradients
  // Arrival of p0 100 ms, then every kernel waits for nothing: the next parameter arrives beside it.
  // Backward ends at 900, the last gradient is down at 1000, 4 x 70 ms of host work.
  EXPECT_EQ(result.end, milliseconds(1280));
  EXPECT_EQ(peak(result, machine, "hbm"), 5 * kGB);  // at b1: three gradients, one parameter in use, one arriving
  EXPECT_EQ(peak(result, machine, "host"), (4 + 8 + 4) * kGB);
}

TEST(OffloadParameters, WithoutPrefetchEveryUseWaits) {
  const Machine machine = test_machine();
  const SimulationResult result =
      run(offloaded(training_step(4, kGB, false), "offload:what=parameters+optimizer,prefetch=0,buffers=0"));
  // p3 alone stays from forward to backward: seven arrivals of 100 ms, eight kernels, 100 + 280 ms as above.
  EXPECT_EQ(link_bytes(result, machine, "pcie_h2d"), 7 * kGB);
  EXPECT_EQ(result.end, milliseconds(700 + 800 + 100 + 280));
  EXPECT_EQ(peak(result, machine, "hbm"), 5 * kGB);  // at b0: one parameter and four gradients
}

TEST(OffloadParameters, OnNvmeTheHostWritesTheUpdateOn) {
  const Machine machine = test_machine();
  const SimulationResult result =
      run(offloaded(training_step(2, kGB, false), "offload:what=parameters+optimizer,to=nvme"));
  EXPECT_EQ(link_bytes(result, machine, "nvme_read"), (2 + 6) * kGB);   // lent once each; states and masters
  EXPECT_EQ(link_bytes(result, machine, "nvme_write"), (2 + 6) * kGB);  // updates; states and masters
}

TEST(Offload, SeparatePoliciesGiveTheSameTraffic) {
  const Machine machine = test_machine();
  const Trace base = training_step(4, kGB, false);
  const Trace together = offloaded(base, "offload:what=optimizer+parameters");
  const Trace apart = apply_rewriters(base, {parse_policy("offload:what=parameters"), parse_policy("offload:what=optimizer")},
                                      machine, *test_pricer(machine));
  EXPECT_EQ(run(together).end, run(apart).end);
  EXPECT_EQ(together.ops.size(), apart.ops.size());
}

TEST(Offload, ComposesOnAGptAndKeepsEveryStepSound) {
  GptShape shape;
  shape.steps = 2;
  for (const bool persistent : {false, true}) {
    shape.preexisting_gradients = persistent;
    for (const char* what : {"activations", "optimizer", "parameters", "activations+optimizer+parameters"}) {
      const Trace trace = offloaded(gpt_step(shape), std::string("offload:min_bytes=1,what=") + what);
      EXPECT_TRUE(check(trace).empty()) << what << ": " << check(trace).front();
      EXPECT_GT(run(trace).end, Time{});
    }
  }
}

TEST(Offload, RefusesWhatTheTraceDoesNotHave) {
  EXPECT_NE(refusal(activation_chain(3), "offload:what=optimizer").find("no optimizer states"), std::string::npos);
  EXPECT_NE(refusal(activation_chain(3), "offload:what=gradients").find("no gradients"), std::string::npos);
  EXPECT_NE(refusal(activation_chain(3), "offload:what=parameters").find("no parameters"), std::string::npos);
  EXPECT_NE(refusal(training_step(1, kGB, false), "offload:what=activations").find("no activations"), std::string::npos);
  Trace poor = activation_chain(3);
  poor.knowledge.dataflow = false;
  EXPECT_NE(refusal(poor, "offload:what=activations").find("needs dataflow"), std::string::npos);
}

TEST(Offload, RefusesAMachineWithoutTheTierOrTheRoute) {
  Machine machine = test_machine();
  machine.tiers.resize(2);
  std::erase_if(machine.routes, [](const Route& r) { return r.from > 1 || r.to > 1; });
  EXPECT_NE(refusal(activation_chain(3), "offload:what=activations,to=peer", machine).find("needs a tier 'peer_hbm'"), std::string::npos);
  EXPECT_NE(refusal(activation_chain(3), "offload:what=activations,to=nvme", machine).find("needs a tier 'nvme'"), std::string::npos);
  machine = test_machine();
  std::erase_if(machine.routes, [](const Route& r) { return r.to == 3; });
  EXPECT_NE(refusal(activation_chain(3), "offload:what=activations,to=peer", machine).find("no route from hbm to peer_hbm"),
            std::string::npos);
}

TEST(Offload, RefusesSettingsThatContradictEachOther) {
  const Trace trace = training_step(1, kGB, false);
  for (const char* policy :
       {"offload:what=activations,pinned=0,prefetch=2", "offload:what=activations,to=peer,pinned=0",
        "offload:what=activations,to=nvme,pinned=1", "offload:what=activations,cpu_adam=0",
        "offload:what=optimizer,to=peer", "offload:what=optimizer,pinned=0", "offload:what=optimizer,pipeline=1",
        "offload:what=optimizer,to=nvme,pipeline=1,staging=2", "offload:what=activations,staging=2",
        "offload:what=optimizer,inputs=1", "offload:what=optimizer+optimizer", "offload:what=activations,fraction=2",
        "offload:what=", "offload:what=activation"})
    EXPECT_NE(refusal(trace, policy), "") << policy;
  EXPECT_NE(refusal(trace, "offload:what=activation").find("Did you mean 'activations'?"), std::string::npos);
}

TEST(Offload, RefusesTheOptimizerAfterItsParametersWereMovedAway) {
  // The order of two offloads is that of their texts; this one puts parameters first.
  const Machine machine = test_machine();
  EXPECT_THROW(apply_rewriters(training_step(2, kGB, false),
                               {parse_policy("offload:to=host,what=parameters"), parse_policy("offload:what=optimizer")},
                               machine, *test_pricer(machine)),
               UsageError);
}

TEST(Offload, SaysWhatItDecided) {
  const Trace trace = offloaded(activation_chain(6), "offload:what=activations,buffers=1");
  ASSERT_FALSE(trace.notes.empty());
  EXPECT_EQ(trace.notes.back(),
            "offload: 5 activations of 5000.0 MB go to host; 5000.0 MB are copied out, 5000.0 MB back; the last 1 "
            "(1000.0 MB) stay, as they would still be in flight when backward begins.");
}

}  // namespace
}  // namespace memwall
