// Does a simulated step keep to the formulas of ZeRO-Infinity's paper where nothing overlaps?
//
// efficiency = compute / (compute + communication) = ait bw / (ait bw + peak), with ait the FLOPs per byte that crosses
// the slow link: seq bsz of parameters and gradients, seq bsz / 4 of optimizer states, 24 hd ci of activation
// checkpoints (Rajbhandari et al. 2021, "ZeRO-Infinity", section 4; quoted from memory). Here every piece of work waits
// for the one before it (CUDA_LAUNCH_BLOCKING), and all links but one are so fast that they take no time.
//
// Tolerance: 1 % of the efficiency. What the formulas leave out is attention (seq / (6 hd) of the FLOPs, 0.3 %), biases
// and normalizations, and here the ranks' own part of a gather (1 / N). Layers are compared by the difference of two
// depths, so that embedding and loss do not count.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/generate.h"
#include "tests/support/deepspeed_checks.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using namespace deepspeed_checks;

constexpr double kPeak = 100e12, kFree = 1e16;  // FLOP/s; bytes per second that take no time
constexpr std::int64_t kLayers = 2;

struct StepShape {
  std::int64_t width = 4096, sequence = 64, batch = 2;
  double tokens() const { return static_cast<double>(sequence * batch); }
};

enum class SlowLink : std::uint8_t { network, nvme, pcie };

// All that is not slow is free.
Machine machine_with(SlowLink slow, double bandwidth, double peak = kPeak) {
  Machine machine = test_machine();
  for (PeakRate& one : machine.gpu.peaks) one.flops = peak;
  for (Link& link : machine.links) link.bandwidth = kFree;
  for (Route& route : machine.routes) {
    const bool storage = route.engine == 3 || route.engine == 4, pcie = route.engine == 0 || route.engine == 1;
    const bool is_slow = (slow == SlowLink::nvme && storage) || (slow == SlowLink::pcie && pcie);
    route.bandwidth = is_slow ? bandwidth : kFree;
  }
  for (Fabric& fabric : machine.fabrics) fabric.bus_bandwidth = slow == SlowLink::network ? bandwidth : kFree;
  machine.host.optimizer_bandwidth = kFree;
  for (Tier& tier : machine.tiers) tier.capacity *= 1000;
  return machine;
}

// Each layer is checkpointed; dropout behind it lets the whole of it run again.
Trace step_of(const StepShape& shape, std::int64_t layers, const Pricer& pricer) {
  TrainingJob job = load_training_job("gpt3-175b");
  set_all(job, {"width=" + std::to_string(shape.width), "heads=32", "vocabulary=64", "precision=fp16",
                "attention=plain", "optimizer=adam", "tied_embedding=false", "checkpoint=full", "dropout=0.1",
                "layers=" + std::to_string(layers), "longest=" + std::to_string(shape.sequence),
                "sequence=" + std::to_string(shape.sequence), "batch=" + std::to_string(shape.batch)});
  Trace t = generate_step(job.model, job.recipe);
  t.knowledge.timing = true;
  for (Op& op : t.ops)
    if (op.kind == OpKind::kernel) op.duration = pricer.kernel(op);
  return t;
}

double seconds_of(Trace t, const Machine& machine, bool overlaps) {
  EXPECT_EQ(check(t), std::vector<std::string>{});
  for (Op& op : t.ops)
    if (!overlaps && runs_on_device(op.kind)) op.wait_for = WaitFor::own_op;
  SimulationOptions options;
  options.allocator = "ideal";
  const SimulationResult run = simulate(t, machine, options);
  EXPECT_TRUE(run.fits);
  return to_seconds(run.end - Time{});
}

// Of kLayers layers, behind as many as `first`, under a policy; "" = none.
double seconds_of_layers(const Machine& machine, const StepShape& shape, const std::string& policy,
                         bool overlaps = false, std::int64_t first = kLayers) {
  const auto pricer = test_pricer(machine);
  const auto of = [&](std::int64_t layers) {
    Trace t = step_of(shape, layers, *pricer);
    if (!policy.empty()) t = apply_rewriters(t, {parse_policy(policy)}, machine, *pricer);
    return seconds_of(std::move(t), machine, overlaps);
  };
  return of(first + kLayers) - of(first);
}

double efficiency_of(const Machine& machine, const StepShape& shape, const std::string& policy) {
  return seconds_of_layers(machine, shape, "") / seconds_of_layers(machine, shape, policy);
}

double formula(double intensity, double bandwidth) { return intensity * bandwidth / (intensity * bandwidth + kPeak); }

// Bandwidths at which the formula says 10, 50 and 90 %.
std::vector<double> bandwidths(double intensity) {
  return {kPeak / 9 / intensity, kPeak / intensity, 9 * kPeak / intensity};
}

// What crosses the slow link, and nothing else.
const std::string kStage3 = ",param_persistence_threshold=40000,prefetch_bucket_size=0";
std::string gathers(const std::string& reuse_distance) {
  return deepspeed(3, 512, kStage3 + ",max_reuse_distance=" + reuse_distance);
}
std::string states(const std::string& more = "") {
  return deepspeed(3, 2, kStage3 + ",max_reuse_distance=0,offload_optimizer=nvme,sub_group_size=50000000" + more);
}
const std::string kCheckpoints = "offload:what=activations,stream=compute,min_bytes=256KiB";

TEST(ZeroInfinityFormulas, ComputationIsEightTimesTwelveWidthSquaredPerTokenAndLayer) {
  const StepShape shape;
  const double width = static_cast<double>(shape.width), flops = 2 * 4 * 12 * shape.tokens() * kLayers * width * width;
  EXPECT_NEAR(seconds_of_layers(machine_with(SlowLink::pcie, kFree), shape, ""), flops / kPeak, 0.01 * flops / kPeak);
}

// Gathered in forward, for the re-run, and in backward; reduced once. Planted fault: what backward uses stays gathered
// from the re-run on, so that three passes are left of four.
TEST(ZeroInfinityFormulas, ParametersAndGradients) {
  const StepShape shape;
  for (const double bandwidth : bandwidths(shape.tokens())) {
    const Machine machine = machine_with(SlowLink::network, bandwidth);
    const double expected = formula(shape.tokens(), bandwidth);
    EXPECT_NEAR(efficiency_of(machine, shape, gathers("0")), expected, 0.01 * expected) << bandwidth;
    EXPECT_GT(efficiency_of(machine, shape, gathers("1000000000")), 1.015 * expected) << bandwidth;
  }
}

// Where it may overlap the step takes no less than the longer of the two (2 %: what cannot overlap at the ends of a
// step is not the same at both depths), and less than both. Of layers behind others: what is gathered ahead spans one.
TEST(ZeroInfinityFormulas, OverlapIsWithinItsBounds) {
  const StepShape shape;
  for (const double bandwidth : bandwidths(shape.tokens())) {
    const Machine machine = machine_with(SlowLink::network, bandwidth);
    const std::string policy = deepspeed(3, 512, ",param_persistence_threshold=40000,max_reuse_distance=0");
    constexpr std::int64_t kBefore = 4 * kLayers;
    const double compute = seconds_of_layers(machine, shape, "", false, kBefore),
                 apart = seconds_of_layers(machine, shape, policy, false, kBefore),
                 overlapped = seconds_of_layers(machine, shape, policy, true, kBefore);
    EXPECT_GE(overlapped, 0.98 * std::max(compute, apart - compute)) << bandwidth;
    EXPECT_LT(overlapped, 0.99 * apart) << bandwidth;
  }
}

// Two ranks, each with drives of its own: 16 bytes a parameter are written, 16 read. Planted fault: no gradient is
// large enough to be swapped, so that 24 bytes are left of 32.
TEST(ZeroInfinityFormulas, OptimizerStates) {
  const StepShape shape;
  const double intensity = shape.tokens() / 4;
  for (const double bandwidth : bandwidths(intensity)) {
    const Machine machine = machine_with(SlowLink::nvme, bandwidth / 2);
    const double expected = formula(intensity, bandwidth);
    EXPECT_NEAR(efficiency_of(machine, shape, states()), expected, 0.01 * expected) << bandwidth;
    EXPECT_GT(efficiency_of(machine, shape, states(",aio_block_size=1GiB")), 1.015 * expected) << bandwidth;
  }
}

// A checkpoint per layer goes and comes. Planted fault: half of them stay.
TEST(ZeroInfinityFormulas, ActivationCheckpoints) {
  const StepShape shape;
  const double intensity = 24 * static_cast<double>(shape.width);
  for (const double bandwidth : bandwidths(intensity)) {
    const Machine machine = machine_with(SlowLink::pcie, bandwidth);
    const double expected = formula(intensity, bandwidth);
    EXPECT_NEAR(efficiency_of(machine, shape, kCheckpoints), expected, 0.01 * expected) << bandwidth;
    EXPECT_GT(efficiency_of(machine, shape, kCheckpoints + ",fraction=0.5"), 1.015 * expected) << bandwidth;
  }
}

// The paper's conclusions for V100 at 70 TFLOP/s, as docs/studies.md has them beside what is simulated: 70 GB/s for 50
// % at a sequence of 1024; 1.5 TB/s of all drives for 90 % at two of them; 2 GB/s for checkpoints of width 2048, 1 GB/s
// for 8192, for more than 50 %.
TEST(ZeroInfinityFormulas, ThePapersConclusionsAreThoseOfThePage) {
  constexpr double kV100 = 70e12;
  const std::string page = content_of(std::filesystem::path(MEMWALL_SOURCE) / "docs/studies.md");
  const auto expect = [&](const std::string& row, double efficiency) {
    const std::string line = row + fmt::format(" {:.0f} % |", 100 * efficiency);
    EXPECT_NE(page.find(line), std::string::npos) << "docs/studies.md lacks: " << line;
  };
  const StepShape one{16384, 1024, 1}, two{16384, 1024, 2};
  expect("| 70 GB/s for parameters and gradients, 1 x 1,024 tokens | 50 % |",
         efficiency_of(machine_with(SlowLink::network, 70e9, kV100), one, gathers("0")));
  expect("| 1.5 TB/s for optimizer states, 2 x 1,024 tokens | 90 % |",
         efficiency_of(machine_with(SlowLink::nvme, 1.5e12 / 2, kV100), two, states()));
  expect("| 2 GB/s for activation checkpoints, width 2,048 | more than 50 % |",
         efficiency_of(machine_with(SlowLink::pcie, 2e9, kV100), {2048, 64, 8}, kCheckpoints));
  expect("| 1 GB/s for activation checkpoints, width 8,192 | more than 50 % |",
         efficiency_of(machine_with(SlowLink::pcie, 1e9, kV100), {8192, 64, 8}, kCheckpoints));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
