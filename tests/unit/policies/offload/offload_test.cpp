// Does `offload` of activations do what its header says, in bytes and in times worked out by hand, and
// what does `offload` refuse?
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/offload_chain.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

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

TEST(OffloadActivations, PinnedCopiesInTheComputeStreamAreSaveOnCpu) {
  const Trace trace = offloaded(activation_chain(6), "offload:what=activations,stream=compute");
  // 12 kernels and 12 copies of 100 ms, one after the other. The host waits for those that leave only.
  EXPECT_EQ(run(trace).end, milliseconds(12 * 100 + 12 * 100));
  std::size_t blocking = 0, others = 0;
  for (const Op& op : trace.ops) {
    if (op.kind != OpKind::copy) continue;
    EXPECT_FALSE(op.pageable);
    EXPECT_EQ(op.wait_for == WaitFor::own_op, trace.places[op.to] == "host");
    ++(op.wait_for == WaitFor::own_op ? blocking : others);
  }
  EXPECT_EQ(blocking, 6u);
  EXPECT_EQ(others, 6u);
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
  EXPECT_NE(sentence.find("it has 6 smaller ones of up to 1.000 kB. Give min_bytes=0 to move these too."),
            std::string::npos)
      << sentence;
  EXPECT_EQ(refusal(activation_chain(6, 1000), "offload:what=activations,min_bytes=0"), "");
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
  const SimulationResult with =
      run(offloaded(activation_chain(6), "offload:what=activations,buffers=1", machine), machine);
  EXPECT_TRUE(with.fits);
  EXPECT_EQ(with.tiers[0].missing, 0);
}

TEST(Offload, SeparatePoliciesGiveTheSameTraffic) {
  const Machine machine = test_machine();
  const Trace base = training_step(4, kGB, false);
  const Trace together = offloaded(base, "offload:what=optimizer+parameters");
  const Trace apart =
      apply_rewriters(base, {parse_policy("offload:what=parameters"), parse_policy("offload:what=optimizer")}, machine,
                      *test_pricer(machine));
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
  EXPECT_NE(refusal(training_step(1, kGB, false), "offload:what=activations").find("no activations"),
            std::string::npos);
  Trace poor = activation_chain(3);
  poor.knowledge.dataflow = false;
  EXPECT_NE(refusal(poor, "offload:what=activations").find("needs dataflow"), std::string::npos);
}

TEST(Offload, RefusesAMachineWithoutTheTierOrTheRoute) {
  Machine machine = test_machine();
  machine.tiers.resize(2);
  std::erase_if(machine.routes, [](const Route& r) { return r.from > 1 || r.to > 1; });
  EXPECT_NE(refusal(activation_chain(3), "offload:what=activations,to=peer", machine).find("needs a tier 'peer_hbm'"),
            std::string::npos);
  EXPECT_NE(refusal(activation_chain(3), "offload:what=activations,to=nvme", machine).find("needs a tier 'nvme'"),
            std::string::npos);
  machine = test_machine();
  std::erase_if(machine.routes, [](const Route& r) { return r.to == 3; });
  EXPECT_NE(
      refusal(activation_chain(3), "offload:what=activations,to=peer", machine).find("no route from hbm to peer_hbm"),
      std::string::npos);
}

TEST(Offload, RefusesSettingsThatContradictEachOther) {
  const Trace trace = training_step(1, kGB, false);
  for (const char* policy :
       {"offload:what=activations,pinned=0,prefetch=2", "offload:what=activations,to=peer,pinned=0",
        "offload:what=activations,to=nvme,pinned=1", "offload:what=activations,stream=compute,prefetch=2",
        "offload:what=activations,stream=own,pinned=0", "offload:what=activations,to=peer,stream=compute",
        "offload:what=optimizer,stream=compute", "offload:what=activations,stream=copy",
        "offload:what=activations,cpu_adam=0", "offload:what=optimizer,to=peer", "offload:what=optimizer,pinned=0",
        "offload:what=optimizer,pipeline=1", "offload:what=optimizer,to=nvme,pipeline=1,staging=2",
        "offload:what=activations,staging=2", "offload:what=optimizer,inputs=1", "offload:what=optimizer+optimizer",
        "offload:what=activations,fraction=2", "offload:what=", "offload:what=activation"})
    EXPECT_NE(refusal(trace, policy), "") << policy;
  EXPECT_NE(refusal(trace, "offload:what=activation").find("Did you mean 'activations'?"), std::string::npos);
}

TEST(Offload, RefusesASecondPolicyForWhatTheFirstHasTaken) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  GptShape shape;
  shape.layers = 12;
  const Trace trace = gpt_step(shape);
  const PolicySpec host = parse_policy("offload:what=activations,to=host,min_bytes=0");
  const PolicySpec peer = parse_policy("offload:what=activations,to=peer,min_bytes=0");
  const PolicySpec half = parse_policy("offload:what=activations,to=host,min_bytes=0,fraction=0.5");
  EXPECT_THROW(apply_rewriters(trace, {host, peer}, machine, *pricer), UsageError);
  EXPECT_THROW(apply_rewriters(trace, {peer, host}, machine, *pricer), UsageError);
  EXPECT_NO_THROW(apply_rewriters(trace, {half, peer}, machine, *pricer));
}

// Whatever the order of flags and texts: the optimizer, then gradients, parameters, activations, as in one policy.
// States that one policy streams through the GPU are not another's to update on the CPU.
TEST(Offload, RefusesAnOptimizerOnTheCpuWhoseStatesAreStreamed) {
  const Machine machine = test_machine();
  const std::vector<PolicySpec> specs = {
      parse_policy("offload:what=activations+optimizer,to=host,min_bytes=1,cpu_adam=0"),
      parse_policy("offload:what=optimizer+gradients,to=host,min_bytes=1")};
  try {
    apply_rewriters(gpt_step({}), specs, machine, *test_pricer(machine));
    FAIL() << "taken";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("an earlier offload has moved every optimizer_state"), std::string::npos)
        << error.what();
  }
}

TEST(Offload, PartsInPoliciesOfTheirOwnAreThePartsOfOne) {
  const Machine machine = test_machine();
  const Trace step = training_step(2, kGB, false);
  for (const char* other : {"parameters", "gradients"}) {
    const std::string first = std::string("offload:to=host,what=") + other, second = "offload:what=optimizer";
    const SimulationResult one = run(offloaded(step, std::string("offload:what=optimizer+") + other));
    for (const auto& flags : {std::pair(first, second), {second, first}}) {
      const SimulationResult two = run(apply_rewriters(step, {parse_policy(flags.first), parse_policy(flags.second)},
                                                       machine, *test_pricer(machine)));
      EXPECT_EQ(two.end, one.end) << other;
      for (const char* tier : {"hbm", "host"}) EXPECT_EQ(peak(two, machine, tier), peak(one, machine, tier)) << other;
      for (const char* link : {"pcie_d2h", "pcie_h2d"})
        EXPECT_EQ(link_bytes(two, machine, link), link_bytes(one, machine, link)) << other;
    }
  }
}

TEST(Offload, RefusesMoreSubGroupsThanAnyoneWants) {
  EXPECT_NE(refusal(training_step(2, kGB, false), "offload:what=optimizer,to=nvme,group=1").find("sub-groups"),
            std::string::npos);
}

TEST(Offload, SaysWhatItDecided) {
  const Trace trace = offloaded(activation_chain(6), "offload:what=activations,buffers=1");
  ASSERT_FALSE(trace.notes.empty());
  EXPECT_EQ(trace.notes.back(),
            "offload: 5 activations of 5.000 GB go to host; 5.000 GB are copied out, 5.000 GB back; the last 1 "
            "(1.000 GB) stays: only a later copy frees its buffer.");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
