// Does zero split a real captured step (VGG13, Adam, H100) as the papers' formulas say?
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "models/workload/import/execution_trace/execution_trace_join.h"
#include "models/workload/import/kineto/kineto_reader.h"
#include "sim/engine/simulation.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace_check.h"
#include "tests/support/live_bytes.h"
#include "tests/support/races.h"
#include "tests/support/shared_data.h"
#include "models/workload/import/timed/timed_import.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr int kRanks = 8;
// VGG13 of torchvision: 133,047,848 parameters, fp32.
constexpr double kParameterBytes = 4.0 * 133'047'848;
constexpr double kOthers = (kRanks - 1.0) / kRanks;
// The capture knows gradients by the blocks that the allocator handed out, unsplit remainders included.
constexpr double kRounding = 0.001;

class ZeroVgg13 : public testing::Test {
 protected:
  void SetUp() override {
    const auto data = shared_data();
    if (!data) GTEST_SKIP() << "MEMWALL_SHARED names no folder with captures";
    const TimedCapture capture = read_kineto(*data / "traces/kineto/vgg13_h100_bs512_train.json");
    ImportedTrace imported = import_timed_capture(capture);
    join_execution_trace(imported, capture,
                         read_execution_trace(*data / "traces/execution_trace/vgg13_h100_bs512.json"));
    trace_ = std::move(imported.trace);
    machine_ = load_machine("h100-sxm-80gb");
  }

  Trace split(int stage, const std::vector<std::string>& before = {}, const std::string& more = "") const {
    std::vector<PolicySpec> specs;
    for (const std::string& policy : before) specs.push_back(parse_policy(policy));
    specs.push_back(parse_policy("zero:stage=" + std::to_string(stage) + ",ranks=" + std::to_string(kRanks) + more));
    const auto pricer = make_pricer(machine_);
    return apply_rewriters(trace_, specs, machine_, *pricer);
  }

  static double sent(const Trace& trace, CollectiveKind kind) {
    Bytes bytes = 0;
    for (const Op& op : trace.ops)
      if (op.kind == OpKind::collective && op.collective == kind) bytes += op.bytes;
    return static_cast<double>(bytes);
  }

  // What a rank keeps when the optimizer begins.
  static double state_at_update(const Trace& trace) {
    const std::vector<LiveBytes> live = live_bytes(trace);
    for (OpId id = 0; id < trace.ops.size(); ++id)
      for (const Use& use : trace.uses_of(trace.ops[id]))
        if (trace.storages[use.storage].kind == StorageKind::optimizer_state)
          return static_cast<double>(model_state(live[id]));
    return 0;
  }

  SimulationResult run(const Trace& trace) const { return simulate(trace, machine_, {}); }
  Bytes peak(const SimulationResult& result) const {
    return result.tiers[static_cast<std::size_t>(machine_.tier("hbm"))].peak_allocated;
  }

  Trace trace_;
  Machine machine_;
};

TEST_F(ZeroVgg13, TrafficIsThePapers) {
  for (Fabric& fabric : machine_.fabrics) fabric.collectives.clear();  // the papers count rings; this GPU's switch adds
  const Trace stage0 = split(0);
  EXPECT_NEAR(sent(stage0, CollectiveKind::all_reduce) / (2 * kParameterBytes * kOthers), 1, kRounding);
  for (const int stage : {1, 2, 3}) {
    const Trace result = split(stage);
    EXPECT_NEAR(sent(result, CollectiveKind::reduce_scatter) / (kParameterBytes * kOthers), 1, kRounding) << stage;
    const double gathers = stage == 3 ? 2 : 1;
    EXPECT_NEAR(sent(result, CollectiveKind::all_gather) / (gathers * kParameterBytes * kOthers), 1, kRounding)
        << stage;
    EXPECT_EQ(sent(result, CollectiveKind::all_reduce), 0) << stage;
  }
}

// fp32 Adam: 4 bytes of parameter, 4 of gradient, 8 of moments per parameter.
TEST_F(ZeroVgg13, ModelStateIsThePapers) {
  const double p = kParameterBytes, n = kRanks;
  const double expected[] = {4 * p, 2 * p + 2 * p / n, p + 3 * p / n, 4 * p / n};
  EXPECT_NEAR(state_at_update(trace_) / expected[0], 1, kRounding);
  for (const int stage : {0, 1, 2, 3})
    EXPECT_NEAR(state_at_update(split(stage)) / expected[stage], 1, kRounding) << stage;
}

TEST_F(ZeroVgg13, EachStageIsSoundAndSmallerThanTheOneBefore) {
  Bytes before = 0;
  for (const int stage : {0, 1, 2, 3}) {
    const Trace result = split(stage);
    EXPECT_EQ(check(result), std::vector<std::string>{}) << stage;
    EXPECT_EQ(races(result), std::vector<std::string>{}) << stage;
    const SimulationResult r = run(result);
    EXPECT_TRUE(r.fits);
    if (stage > 0) {
      EXPECT_LT(peak(r), before) << stage;
    }
    before = peak(r);
  }
}

// Backward hides at least half of what the reductions take; without overlap nothing does.
TEST_F(ZeroVgg13, OverlapHidesTheReductions) {
  const double base = to_seconds(run(trace_).gpu_span);
  const double overlapped = to_seconds(run(split(0)).gpu_span),
               exposed = to_seconds(run(split(0, {}, ",overlap=0")).gpu_span);
  Duration collectives{};
  const Trace stage0 = split(0);
  for (const Op& op : stage0.ops)
    if (op.kind == OpKind::collective) collectives += op.duration;
  EXPECT_GT(overlapped, base);
  EXPECT_LT(overlapped, base + 0.5 * to_seconds(collectives));
  EXPECT_GT(exposed, base + 0.99 * to_seconds(collectives));
}

TEST_F(ZeroVgg13, WithoutNvlinkTheStepIsLonger) {
  const double nvlink = to_seconds(run(split(3)).gpu_span);
  machine_.fabrics.erase(machine_.fabrics.begin());
  ASSERT_EQ(machine_.fabrics.front().name, "pcie");
  EXPECT_GT(to_seconds(run(split(3)).gpu_span), nvlink + 0.003);
}

TEST_F(ZeroVgg13, ComposesWithCheckpointingAndOffload) {
  const Trace all = split(3, {"checkpoint:mode=full", "offload:what=optimizer,to=host"});
  EXPECT_EQ(check(all), std::vector<std::string>{});
  const SimulationResult r = run(all);
  EXPECT_LT(peak(r), peak(run(split(3))));
  EXPECT_EQ(all.ranks, static_cast<std::uint32_t>(kRanks));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
