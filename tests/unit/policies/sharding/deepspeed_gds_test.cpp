// Does stage 3 with GPUDirect Storage read parameters from NVMe into the GPU, and nothing else that way?
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/deepspeed_checks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using namespace deepspeed_checks;

// Nothing stays gathered, nothing is kept, nothing is fetched ahead; all partitions are on NVMe.
constexpr const char* kOnDrives =
    ",param_persistence_threshold=0,max_reuse_distance=0,prefetch_bucket_size=0,offload_optimizer=cpu,"
    "offload_param=nvme,max_in_cpu=0,buffer_size=2000000";
constexpr const char* kGds = ",aio_use_gds=1";

// The test machine with a way from NVMe to the GPU, at the rate of its drives, and one back.
Machine machine_with_gds() {
  Machine machine = test_machine();
  const auto link = [&](const char* name) { return static_cast<std::uint16_t>(machine.link(name)); };
  Route read;
  read.from = static_cast<std::uint16_t>(machine.tier("nvme"));
  read.to = static_cast<std::uint16_t>(machine.tier("hbm"));
  read.engine = 3;
  read.links = {link("nvme_read"), link("pcie_h2d"), link("hbm")};
  read.bandwidth = 4e9;
  machine.routes.push_back(read);
  return machine;
}

Trace stepped(const Trace& trace, const std::string& more, const Machine& machine) {
  const auto pricer = test_pricer(machine);
  return apply_rewriters(trace, {parse_policy(deepspeed(3, 2, kOnDrives + more))}, machine, *pricer);
}

SimulationResult run_on(const Trace& trace, const Machine& machine) {
  SimulationOptions options;
  options.allocator = "ideal";
  return simulate(trace, machine, options);
}

Bytes link_bytes(const SimulationResult& result, const Machine& machine, const std::string& name) {
  return result.links[static_cast<std::size_t>(machine.link(name))].bytes;
}

// Layers of 2 Mi elements over 2 ranks: partitions of 2 MiB.
Trace four_layers() { return layer_trace(layers(std::vector<Bytes>(4, 2 << 20))); }

// Each partition is read twice. Through the host it crosses DRAM and the bus' copy engine besides; with GPUDirect
// Storage only drives, bus and HBM. What the step writes goes through host memory both times.
TEST(DeepSpeedGds, PartitionsGoFromNvmeToTheGpuWithoutTheHost) {
  const Machine machine = machine_with_gds();
  const Trace trace = four_layers();
  const Trace host = stepped(trace, "", machine), gpu = stepped(trace, kGds, machine);
  expect_sound(gpu);
  const auto read = [](const Trace& t, const std::string& to) {
    Bytes bytes = 0;
    for (const OpId id : ops_named(t, "read"))
      if (t.places[t.ops[id].to] == to) bytes += t.ops[id].bytes;
    return bytes;
  };
  EXPECT_EQ(read(host, "host"), 2 * 4 * MiB(2));
  EXPECT_EQ(read(gpu, "host"), 0);
  EXPECT_EQ(read(gpu, "hbm"), read(host, "host"));
  EXPECT_EQ(count_named(host, "copy_to_device"), count_named(host, "read"));
  EXPECT_EQ(count_named(gpu, "copy_to_device"), 0u);
  Bytes written = 0;
  for (const OpId id : ops_named(gpu, "write")) {
    EXPECT_EQ(gpu.places[gpu.ops[id].from], "host");
    written += gpu.ops[id].bytes;
  }
  EXPECT_EQ(written, 4 * MiB(2));
  const SimulationResult through_host = run_on(host, machine), direct = run_on(gpu, machine);
  // A read through the host crosses its DRAM twice: into the buffer, and out of it.
  EXPECT_EQ(link_bytes(through_host, machine, "host_dram") - link_bytes(direct, machine, "host_dram"),
            2 * read(gpu, "hbm"));
  EXPECT_EQ(link_bytes(direct, machine, "pcie_h2d"), read(gpu, "hbm"));
  EXPECT_LT(direct.end, through_host.end);
}

// The buffers are the GPU's: 5 of 2 million elements of 2 bytes. Nothing else of it is in host memory but what the step
// writes from, the largest sub-group's partitions.
TEST(DeepSpeedGds, BuffersAreOnTheGpu) {
  const Machine machine = machine_with_gds();
  const Trace host = stepped(four_layers(), "", machine), gpu = stepped(four_layers(), kGds, machine);
  EXPECT_EQ(at_rest(host, StorageKind::workspace, "host"), 5 * 2 * 2'000'000);
  EXPECT_EQ(at_rest(gpu, StorageKind::workspace, "host"), 0);
  EXPECT_EQ(at_rest(gpu, StorageKind::workspace), 5 * 2 * 2'000'000);
  EXPECT_EQ(at_rest(gpu, StorageKind::parameter, "host"), at_rest(host, StorageKind::parameter, "host"));
  EXPECT_EQ(at_rest(gpu, StorageKind::parameter, "host"), 4 * MiB(2));
}

// With one buffer nothing is read ahead. Through the host each layer takes a read (2 MiB at 4 GB/s) and a copy (at
// 10 GB/s), for both of which the host waits, and its gather runs beside the next read; directly the next read waits
// until the gather (2 MiB at 100 GB/s) has read the buffer. The last layer shares HBM with a read.
TEST(DeepSpeedGds, AReadIntoABufferWaitsForTheGatherThatReadsIt) {
  const Machine machine = machine_with_gds();
  Trace trace = four_layers();
  trace.constants.event_latency = Duration{};
  const auto forward_end = [&](const std::string& more) {
    const Trace t = stepped(trace, ",offload_param_buffer_count=1" + more, machine);
    expect_sound(t);
    const SimulationResult run = run_on(t, machine);
    Time end{};
    for (OpId id = 0; id < t.ops.size(); ++id)
      if (t.strings[t.ops[id].name] == "linear") end = run.records[id].end;
    return to_seconds(end - Time{});
  };
  const double bytes = 2 << 20, read = bytes / 4e9, copy = bytes / 10e9, gather = bytes / 100e9, kernel = 1e-6;
  EXPECT_NEAR(forward_end(""), 4 * (read + copy) + gather + kernel, 1e-11);
  EXPECT_NEAR(forward_end(kGds), 4 * (read + gather) + kernel / (1 - 4e9 / 1e12), 1e-11);
}

// cuFile keeps its own queue and threads for what the GPU reads; the handle has one thread for what is in host memory.
TEST(DeepSpeedGds, ItsHandleWritesWithOneThreadAndReadsWithAFullQueue) {
  Machine machine = machine_with_gds();
  for (Route& route : machine.routes)
    if (route.engine == 3 || route.engine == 4) route.latency = microseconds(100);
  const std::string aio = ",aio_queue_depth=1,aio_block_size=64KiB,aio_intra_op_parallelism=4,aio_overlap_events=0";
  const auto took = [&](const std::string& more, const std::string& op) {
    const Trace t = stepped(layer_trace(layers({2 << 20})), aio + more, machine);
    return t.ops[ops_named(t, op).front()].duration;
  };
  // 2 MiB in batches of 256 KiB, 100 us each; at 2 GB/s to write, 4 GB/s to read.
  EXPECT_EQ(took("", "read"), from_seconds((2 << 20) / 4e9) + microseconds(100 + 8 * 100));
  EXPECT_EQ(took(kGds, "read"), microseconds(8 * 100));
  EXPECT_EQ(took("", "write"), from_seconds((2 << 20) / 2e9) + microseconds(100 + 8 * 100));
  EXPECT_EQ(took(kGds, "write"), from_seconds((2 << 20) / 2e9) + microseconds(100 + 32 * 100));
}

// DeepSpeed's optimizer swapper never asks for it, and so it does nothing where no parameter is on NVMe.
TEST(DeepSpeedGds, OptimizerStatesGoThroughTheHost) {
  const Trace trace = layer_trace(layers({2'000'000, 2'000'000}));
  const std::string policy = deepspeed(3, 2, ",offload_optimizer=nvme,param_persistence_threshold=0");
  const Trace plain = rewritten(trace, policy), asked = rewritten(trace, policy + kGds);
  EXPECT_EQ(added_order(asked), added_order(plain));
  EXPECT_EQ(simulated(asked).end, simulated(plain).end);
  EXPECT_TRUE(has_note(asked, "aio_use_gds has no effect"));
  EXPECT_FALSE(has_note(plain, "aio_use_gds"));
}

TEST(DeepSpeedGds, NeedsARouteOfTheMachine) {
  EXPECT_NE(
      refusal(four_layers(), deepspeed(3, 2, std::string(kOnDrives) + kGds)).find("has no route from nvme to hbm"),
      std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
