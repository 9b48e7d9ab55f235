// Does checkpointing of a real training step (VGG13, batch 512, H100) drop what the network's shapes say,
// keep every content, and cost exactly what it re-runs?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "models/hw/machine_file.h"
#include "models/workload/import/execution_trace/execution_trace_join.h"
#include "models/workload/import/kineto/kineto_reader.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/shared_data.h"
#include "traces/run/analysis/accounting.h"
#include "models/workload/import/timed/timed_import.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class CheckpointVgg13 : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto data = shared_data();
    if (!data) return;
    const TimedCapture capture = read_kineto(*data / "traces/kineto/vgg13_h100_bs512_train.json");
    ImportedTrace imported = import_timed_capture(capture);
    join_execution_trace(imported, capture,
                         read_execution_trace(*data / "traces/execution_trace/vgg13_h100_bs512.json"));
    trace_ = new Trace(std::move(imported.trace));
  }
  static void TearDownTestSuite() {
    delete trace_;
    trace_ = nullptr;
  }
  void SetUp() override {
    if (trace_ == nullptr) GTEST_SKIP() << "MEMWALL_SHARED names no folder with captures";
  }
  static const Trace* trace_;
};
const Trace* CheckpointVgg13::trace_ = nullptr;

constexpr Bytes kBatch = 512, kFloat = 4, kIndex = 8;

// Bytes of a convolution's output, of a pool's indices.
constexpr Bytes output_bytes(Bytes channels, Bytes side) { return kBatch * channels * side * side * kFloat; }
constexpr Bytes index_bytes(Bytes channels, Bytes side) { return kBatch * channels * side * side * kIndex; }

OpId first_backward(const Trace& t) {
  return static_cast<OpId>(
      std::find_if(t.ops.begin(), t.ops.end(),
                   [](const Op& op) { return op.phase == Phase::backward || op.phase == Phase::recompute; }) -
      t.ops.begin());
}

Bytes live_at_backward(const Trace& t) { return live_bytes(t, StorageKind::activation)[first_backward(t)]; }

SimulationResult on_h100(const Trace& trace, const char* allocator) {
  SimulationOptions options;
  options.allocator = allocator;
  return simulate(trace, load_machine("h100-sxm-80gb"), options);
}

const char* const kPolicies[] = {"checkpoint",
                                 "checkpoint:mode=sqrt",
                                 "checkpoint:every=3",
                                 "checkpoint:early_stop=0",
                                 "checkpoint:ops=max_pool2d_with_indices+native_dropout",
                                 "checkpoint:last=keep",
                                 "checkpoint:modules=VGG_0.Sequential_0"};

TEST_F(CheckpointVgg13, EveryRerunComputesWhatItsOriginalDid) {
  for (const char* policy : kPolicies) {
    SCOPED_TRACE(policy);
    const Trace after = rewritten(*trace_, policy);
    EXPECT_EQ(check(after), std::vector<std::string>());
    expect_same_contents(*trace_, after);
    for (const StorageKind kind : {StorageKind::activation, StorageKind::workspace, StorageKind::gradient})
      EXPECT_EQ(live_bytes(after, kind).back(), live_bytes(*trace_, kind).back());
  }
}

// The modules are single layers in a row, so the units are segments: conv, conv (the first one's output
// goes, the second's is where the pool starts from), pool (its indices go), and so on; at the end the
// average pool with the first linear layer.
TEST_F(CheckpointVgg13, FullDropsEverySecondConvolutionAndThePoolsIndices) {
  const Trace after = rewritten(*trace_, "checkpoint:mode=full");
  Bytes expected = output_bytes(512, 7);  // the average pool's output
  for (const auto& [channels, side] : {std::pair<Bytes, Bytes>{64, 224}, {128, 112}, {256, 56}, {512, 28}, {512, 14}})
    expected += output_bytes(channels, side) + index_bytes(channels, side / 2);
  // Beside it only the classifier's few: two dropouts' masks and inputs, the loss.
  const Bytes dropped = live_at_backward(*trace_) - live_at_backward(after);
  EXPECT_GE(dropped, expected);
  EXPECT_LE(dropped, expected + 3 * kBatch * 4096 * kFloat);
}

TEST_F(CheckpointVgg13, TheStepGrowsByWhatIsRunAgain) {
  const Time before = on_h100(*trace_, "ideal").end;
  for (const char* policy : kPolicies) {
    SCOPED_TRACE(policy);
    const Trace after = rewritten(*trace_, policy);
    const Duration again = device_time(after, Phase::recompute);
    const Duration gaps = static_cast<int>(count(after, Phase::recompute)) * microseconds(3);  // 2 us between kernels
    const Duration growth = on_h100(after, "ideal").end - before;
    EXPECT_GE(growth, again);
    EXPECT_LE(growth, again + gaps);
  }
}

TEST_F(CheckpointVgg13, EveryInstantIsAccountedFor) {
  memwall::Run run;
  run.trace = rewritten(*trace_, "checkpoint:mode=sqrt");
  run.machine = machine_of_ranks(load_machine("h100-sxm-80gb"), run.trace);
  run.result = on_h100(run.trace, "pytorch");
  const TimeAccounting accounting = account(run);
  EXPECT_EQ(accounting.total.total(), run.result.end);
  EXPECT_EQ(accounting.total[TimeClass::recompute], device_time(run.trace, Phase::recompute));
  EXPECT_EQ(accounting.total[TimeClass::idle], Duration{});
}

// Backward's own temporaries (copies of the first layers' gradients, 6.6 GB each) bound what can be saved.
TEST_F(CheckpointVgg13, ThePeakFalls) {
  const Bytes before = on_h100(*trace_, "pytorch").tiers[0].peak_allocated;
  EXPECT_LT(on_h100(rewritten(*trace_, "checkpoint:mode=full"), "pytorch").tiers[0].peak_allocated, before);
  EXPECT_LT(on_h100(rewritten(*trace_, "checkpoint:mode=sqrt"), "pytorch").tiers[0].peak_allocated, before);
}

TEST_F(CheckpointVgg13, WithoutTheExecutionTraceItIsRefused) {
  const auto data = shared_data();
  const Trace bare = import_timed_capture(read_kineto(*data / "traces/kineto/vgg13_h100_bs512_train.json")).trace;
  EXPECT_NE(refusal(bare, "checkpoint").find("needs dataflow"), std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
