// Offload on a real training step: VGG-13, batch 512, Adam, captured on an H100 with its ExecutionTrace
// (34.6 GB of activations live at the end of forward; 39.3 GB peak). Bytes are exact; times are
// bounds that hold for any link, because no measurement of this offload exists here.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "models/workload/import/execution_trace/execution_trace_join.h"
#include "models/workload/import/kineto/kineto_reader.h"
#include "sim/engine/simulation.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace_check.h"
#include "tests/support/shared_data.h"
#include "models/workload/import/timed/timed_import.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr double kGB = 1e9;

class OffloadVgg13 : public testing::Test {
 protected:
  void SetUp() override {
    const auto data = shared_data();
    if (!data) GTEST_SKIP() << "no captures: MEMWALL_SHARED names no folder with data/";
    const TimedCapture capture = read_kineto(*data / "traces/kineto/vgg13_h100_bs512_train.json");
    ImportedTrace imported = import_timed_capture(capture);
    join_execution_trace(imported, capture,
                         read_execution_trace(*data / "traces/execution_trace/vgg13_h100_bs512.json"));
    base_ = std::move(imported.trace);
    machine_ = load_machine("h100-sxm-80gb");
  }

  Trace offloaded(const std::string& policy) const {
    return apply_rewriters(base_, {parse_policy(policy)}, machine_, *make_pricer(machine_));
  }
  SimulationResult run(const Trace& trace, Machine machine) const {
    SimulationOptions options;
    options.allocator = "ideal";
    return simulate(trace, machine, options);
  }
  SimulationResult run(const Trace& trace) const { return run(trace, machine_); }
  Machine card(double gigabytes) const {
    Machine machine = machine_;
    machine.tiers[machine.tier("hbm")].capacity = static_cast<Bytes>(gigabytes * kGB);
    return machine;
  }
  const TierResult& hbm(const SimulationResult& result) const { return result.tiers[machine_.tier("hbm")]; }
  Bytes link(const SimulationResult& result, const char* name) const { return result.links[machine_.link(name)].bytes; }

  Trace base_;
  Machine machine_;
};

// Bytes of activations on the device, in host order, when the first backward kernel is issued.
Bytes activations_at_backward(const Trace& trace) {
  Bytes live = 0;
  for (const Op& op : trace.ops) {
    if (op.kind == OpKind::kernel && op.phase == Phase::backward) return live;
    if (op.kind != OpKind::alloc && op.kind != OpKind::free) continue;
    const Storage& s = trace.storages[op.target];
    if (s.kind == StorageKind::activation && trace.places[s.place] == "hbm")
      live += op.kind == OpKind::alloc ? s.bytes : -s.bytes;
  }
  return live;
}

// Activations of 1 MiB or more that forward makes and backward uses, by their last use in forward.
std::vector<Bytes> crossing_activations(const Trace& trace) {
  std::map<StorageId, OpId> last_forward;
  std::set<StorageId> needed;
  for (OpId id = 0; id < trace.ops.size(); ++id)
    for (const Use& use : trace.uses_of(trace.ops[id])) {
      if (trace.storages[use.storage].kind != StorageKind::activation || trace.storages[use.storage].bytes < MiB(1))
        continue;
      if (trace.ops[id].phase == Phase::forward) last_forward[use.storage] = id;
      if (trace.ops[id].phase == Phase::backward && last_forward.contains(use.storage)) needed.insert(use.storage);
    }
  std::vector<std::pair<OpId, StorageId>> order;
  for (const StorageId id : needed) order.emplace_back(last_forward[id], id);
  std::sort(order.begin(), order.end());
  std::vector<Bytes> bytes;
  for (const auto& [op, id] : order) bytes.push_back(trace.storages[id].bytes);
  return bytes;
}

TEST_F(OffloadVgg13, ActivationsLeaveAndReturnByteForByte) {
  const std::vector<Bytes> crossing = crossing_activations(base_);
  for (const std::size_t buffers : {0, 1, 5}) {
    const Trace trace = offloaded("offload:what=activations,buffers=" + std::to_string(buffers));
    ASSERT_TRUE(check(trace).empty());
    Bytes expected = 0;  // all but the last ones, which are still in flight when backward begins
    for (std::size_t i = 0; i + buffers < crossing.size(); ++i) expected += crossing[i];
    EXPECT_GT(static_cast<double>(expected), 34.5 * kGB);
    const SimulationResult result = run(trace);
    EXPECT_EQ(link(result, "pcie_d2h"), expected);
    EXPECT_EQ(link(result, "pcie_h2d"), expected);
    // What is away at the turn of the step is what was offloaded, less what already comes back.
    Bytes returning = 0;
    for (const Op& op : trace.ops) {
      if (op.kind == OpKind::kernel && op.phase == Phase::backward) break;
      if (op.kind == OpKind::alloc && op.phase == Phase::backward && op.added &&
          trace.places[trace.storages[op.target].place] == "hbm")
        returning += trace.storages[op.target].bytes;
    }
    EXPECT_EQ(activations_at_backward(base_) - activations_at_backward(trace), expected - returning);
  }
}

TEST_F(OffloadVgg13, NoStepIsFasterThanItsKernelsOrItsLinks) {
  for (const char* policy : {"offload:what=activations", "offload:what=activations,to=peer",
                             "offload:what=activations,to=nvme", "offload:what=optimizer",
                             "offload:what=parameters+gradients+activations", "offload:what=optimizer,cpu_adam=0"}) {
    const Trace trace = offloaded(policy);
    Duration compute{};
    for (const Op& op : trace.ops) compute += op.kind == OpKind::kernel ? op.duration : Duration{};
    const SimulationResult result = run(trace);
    EXPECT_GE(result.end, compute) << policy;
    for (std::size_t i = 0; i < machine_.links.size(); ++i)
      EXPECT_GE(to_seconds(result.end) * machine_.links[i].bandwidth * machine_.links[i].sharers * (1 + 1e-9),
                static_cast<double>(result.links[i].bytes))
          << policy << ": " << machine_.links[i].name;
  }
}

TEST_F(OffloadVgg13, NvlinkMatters) {
  const Duration without = run(base_).end;
  const SimulationResult host = run(offloaded("offload:what=activations"));
  const SimulationResult peer = run(offloaded("offload:what=activations,to=peer"));
  RecordProperty("step_ms", std::to_string(to_seconds(without) * 1e3));
  RecordProperty("to_host_over_pcie_ms", std::to_string(to_seconds(host.end) * 1e3));
  RecordProperty("to_peer_over_nvlink_ms", std::to_string(to_seconds(peer.end) * 1e3));
  // 34.5 GB each way at about 55 GB/s is 1.25 s for a step of 0.35 s; NVLink, seven times as fast, hides
  // nearly all of it behind the kernels.
  EXPECT_GT(to_seconds(host.end), 3.5 * to_seconds(without));
  EXPECT_LT(to_seconds(peer.end), 1.1 * to_seconds(without));
  EXPECT_EQ(link(peer, "nvlink_out"), link(host, "pcie_d2h"));
}

TEST_F(OffloadVgg13, ASmallCardDoesNotFitWithoutAndWithOnlyAsFarAsOneOperatorFits) {
  const Trace with = offloaded("offload:what=activations+optimizer,buffers=1");
  const SimulationResult base = run(base_), rest = run(with);
  EXPECT_NEAR(static_cast<double>(hbm(base).peak_allocated), 39.34 * kGB, 0.01 * kGB);
  // Backward of the second convolution holds its input, two gradients of its size and as much again
  // of workspace, 6.6 GB each: what no offload of whole tensors can take away.
  const Bytes one = 512LL * 64 * 224 * 224 * 4;
  const auto by_kind = [&](StorageKind kind) { return hbm(rest).peak_by_kind[static_cast<int>(kind)]; };
  EXPECT_NEAR(static_cast<double>(by_kind(StorageKind::activation)) / static_cast<double>(one), 3, 0.01);
  EXPECT_NEAR(static_cast<double>(by_kind(StorageKind::workspace)) / static_cast<double>(one), 2, 0.01);
  EXPECT_EQ(by_kind(StorageKind::optimizer_state), 0);
  EXPECT_LT(hbm(rest).peak_allocated, hbm(base).peak_allocated);
  for (const double gigabytes : {24.0, 37.0}) {
    const Machine machine = card(gigabytes);
    const SimulationResult without = run(base_, machine), fitted = run(with, machine);
    const Bytes usable = machine.tiers[machine.tier("hbm")].usable();
    EXPECT_FALSE(without.fits);
    EXPECT_EQ(hbm(without).missing, hbm(base).peak_allocated - usable);
    EXPECT_EQ(fitted.fits, gigabytes > 30);
    EXPECT_EQ(hbm(fitted).missing, std::max<Bytes>(0, hbm(rest).peak_allocated - usable));
  }
}

TEST_F(OffloadVgg13, TheCpuOptimizerFindsTheModelsParameters) {
  // torchvision's VGG-13 has 133,047,848 parameters; storages are as allocated, up to 512 bytes more each.
  const Trace trace = offloaded("offload:what=optimizer");
  Bytes dram = 0;
  Duration host{};
  for (const Op& op : trace.ops) {
    if (op.kind != OpKind::host_work) continue;
    dram += op.bytes;
    host += op.duration;
  }
  EXPECT_NEAR(static_cast<double>(dram) / 28, 133'047'848.0, 133.0 * 1000);
  EXPECT_EQ(host, make_pricer(machine_)->host_memory_work(dram));
  for (const Op& op : trace.ops)
    EXPECT_FALSE(op.kind == OpKind::kernel && op.phase == Phase::optimizer && op.use_count > 0)
        << trace.strings[op.name];
  const SimulationResult result = run(trace);
  EXPECT_NEAR(static_cast<double>(link(result, "pcie_h2d")), 4 * 133'047'848.0, 0.001 * kGB);
  EXPECT_NEAR(static_cast<double>(link(result, "pcie_d2h")), 4 * 133'047'848.0, 0.001 * kGB);
  EXPECT_GT(result.end, run(base_).end);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
