// Does a program recorded by libmemwall_inject replay as the same program recorded by Kineto? The events of real Kineto
// captures are written as .mwi records and read back: whatever the two formats have in common must come out equal.
#include <gtest/gtest.h>

#include <algorithm>

#include "models/hw/machine_file.h"
#include "models/workload/import/cupti/inject_import.h"
#include "models/workload/import/kineto/kineto_reader.h"
#include "models/workload/import/timed/timed_import.h"
#include "sim/engine/simulation.h"
#include "tests/support/inject_writer.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shared_data.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Case {
  const char* file;
  const char* machine;
};

// Occupancies are not compared: Kineto rounds them to a percent, and a .mwi file has what they are computed from.
const Case kCases[] = {
    {"kineto/vgg13_h100_bs512_train.json", "h100-sxm-80gb"},
    {"kineto/toy_ddp_2xa100.json.gz", "a100-sxm-40gb"},
    {"kineto/alexnet_critical_path.json.gz", "a100-sxm-40gb"},
    {"kineto/event_sync_multi_stream.json.gz", "a100-sxm-40gb"},
    {"kineto/resnet50_v100_bs32_2021.json.gz", "v100-sxm2-32gb"},
    {"kineto/recommender_2xv100.json.gz", "v100-sxm2-16gb"},
    {"kineto/bert_small_h100_inference.json.gz", "h100-sxm-80gb"},
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.file; }

class InjectImport : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto data = shared_data();
    if (!data) GTEST_SKIP() << "no captures here";
    capture_ = read_kineto(*data / "traces" / GetParam().file);
    capture_.memory.clear();  // PyTorch's allocator is not seen by CUPTI
    kineto_ = import_timed_capture(capture_);
    as_injected(capture_).save(folder_ / "a.mwi");
    read_ = read_inject(folder_ / "a.mwi");
    injected_ = import_cupti_capture(read_);
  }

  // Do ranges of the capture say "## backward ##" or the like? A .mwi file's ranges are heeded, and phases are finer.
  bool names_phases() const {
    const auto& ranges = read_.capture.operators;
    return std::any_of(ranges.begin(), ranges.end(), [](const CapturedOperator& range) {
      return range.meaning != RangeMeaning::none && range.meaning != RangeMeaning::step;
    });
  }

  ScratchFolder folder_;
  TimedCapture capture_;
  ImportedTrace kineto_, injected_;
  CuptiCapture read_;
};

TEST_P(InjectImport, EveryOpIsTheSame) {
  const Trace &a = kineto_.trace, &b = injected_.trace;
  ASSERT_EQ(b.ops.size(), a.ops.size());
  std::size_t kernels = 0;
  for (OpId id = 0; id < a.ops.size(); ++id) {
    const Op &x = a.ops[id], &y = b.ops[id];
    ASSERT_EQ(y.kind, x.kind) << id;
    ASSERT_EQ(b.strings[y.name], a.strings[x.name]) << id;
    ASSERT_EQ(b.strings[y.operator_name], a.strings[x.operator_name]) << id;
    ASSERT_EQ(b.strings[y.module], a.strings[x.module]) << id;
    ASSERT_EQ(y.stream, x.stream) << id;
    ASSERT_EQ(y.thread, x.thread) << id;
    ASSERT_EQ(y.target, x.target) << id;
    ASSERT_EQ(y.wait_for, x.wait_for) << id;
    ASSERT_EQ(y.duration, x.duration) << id;
    ASSERT_EQ(y.host_gap, x.host_gap) << id;
    ASSERT_EQ(y.host_cost, x.host_cost) << id;
    ASSERT_EQ(y.return_delay, x.return_delay) << id;
    ASSERT_EQ(y.graph_member, x.graph_member) << id;
    ASSERT_TRUE(y.phase == x.phase || names_phases()) << id;
    ASSERT_TRUE(y.bytes == x.bytes || x.kind == OpKind::collective)
        << id;  // a collective's size stands in an annotation
    kernels += x.kind == OpKind::kernel;
  }
  EXPECT_GT(kernels, 0u);
  EXPECT_EQ(b.event_count, a.event_count);
  EXPECT_EQ(b.steps.size(), a.steps.size());
}

TEST_P(InjectImport, TheReplayTakesAsLong) {
  const Machine machine = load_machine(GetParam().machine);
  SimulationOptions options;
  options.allocator = "ideal";
  const double a = to_microseconds(simulate(kineto_.trace, machine, options).end);
  const double b = to_microseconds(simulate(injected_.trace, machine, options).end);
  EXPECT_EQ(b, a);
}

INSTANTIATE_TEST_SUITE_P(Captures, InjectImport, ::testing::ValuesIn(kCases));

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
