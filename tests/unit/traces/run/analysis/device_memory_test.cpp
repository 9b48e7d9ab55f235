// What nvidia-smi shows beside PyTorch's allocator: context, cuBLAS's workspaces, NCCL's buffers, by hand.
#include "traces/run/analysis/device_memory.h"

#include <gtest/gtest.h>

#include "models/hw/machine_file.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/generate.h"
#include "tests/support/rewrite_checks.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kMiB = 1 << 20, kKiB = 1 << 10;

Trace small_step() {
  TrainingJob job = load_training_job("gpt2-124m");
  set_all(job, {"layers=2", "width=64", "heads=4", "vocabulary=100", "longest=32", "sequence=32", "batch=1"});
  Trace t = generate_step(job.model, job.recipe);
  t.knowledge.timing = true;
  for (Op& op : t.ops)
    if (op.kind == OpKind::kernel) op.duration = microseconds(1);
  return t;
}

DeviceMemory memory_of(const Trace& trace, const std::string& machine) {
  const memwall::Run run = simulate_and_record(trace, load_machine(machine, {}), RunSettings{});
  const std::optional<DeviceMemory> memory = device_memory(run);
  EXPECT_TRUE(memory);
  return memory.value_or(DeviceMemory{});
}

TEST(DeviceMemory, OnOneGpuContextAndOneWorkspaceComeOnTop) {
  const DeviceMemory a100 = memory_of(small_step(), "a100-sxm-80gb");
  EXPECT_EQ(a100.product_streams, 1u);
  EXPECT_EQ(a100.workspaces, 8320 * kKiB);
  EXPECT_EQ(a100.communicators, 0u);
  EXPECT_EQ(a100.communication, 0);
  EXPECT_EQ(a100.context, load_machine("a100-sxm-80gb", {}).tiers[0].unavailable);
  EXPECT_GT(a100.context, 0);
  EXPECT_GE(a100.reserved, a100.allocated);
  EXPECT_EQ(a100.shown(), a100.reserved + 8320 * kKiB + a100.context);
  EXPECT_EQ(memory_of(small_step(), "h100-sxm-80gb").workspaces, 32 * kMiB);
}

// A ring of 24 channels: Simple, LL and LL128 for each.
TEST(DeviceMemory, CommunicatorsHaveBuffers) {
  const Trace trained_by_four = rewritten(small_step(), "ddp:ranks=4");
  const DeviceMemory nvlink = memory_of(trained_by_four, "dgx-a100-80gb");
  EXPECT_EQ(nvlink.communicators, 1u);
  EXPECT_EQ(nvlink.communication, 24 * (4 * kMiB + 512 * kKiB + 4800 * kKiB));
  EXPECT_EQ(memory_of(trained_by_four, "rtx-4090").communication, nvlink.communication / 6);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
