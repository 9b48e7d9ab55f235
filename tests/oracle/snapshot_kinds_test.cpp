// Four real snapshots: do kinds, steps and live sets add up to what the models are known to have?
//
// In 32 bits, a parameter has a gradient of its size and two states of Adam: nobody told the rules, which look at
// frames and lives, so sums that agree to the byte are evidence for them.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "models/workload/import/snapshot/snapshot_reader.h"
#include "models/workload/memory/memory_report.h"
#include "tests/support/shared_data.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Kind = StorageKind;

struct Explained {
  MemoryRecording recording;
  AllocationTable table;
  std::uint32_t peak_event = 0;
  Bytes peak = 0, start = 0, end = 0;

  std::map<std::string, Bytes> by_kind(std::uint32_t event) const {
    std::map<std::string, Bytes> bytes;
    for (const LiveGroup& group : live_set_at(recording, table, event).by_kind) bytes[group.name] = group.requested;
    return bytes;
  }
  std::uint32_t last_event() const { return static_cast<std::uint32_t>(table.phases.size() - 1); }
  std::map<Kind, std::uint64_t> blocks_at(std::uint32_t event) const {
    std::map<Kind, std::uint64_t> blocks;
    for (const Allocation& a : table.allocations)
      if (a.lives_at(event)) ++blocks[a.kind];
    return blocks;
  }
};

void find_peak(Explained& e) {
  std::vector<Bytes> change(e.table.phases.size());
  for (const Allocation& a : e.table.allocations) {
    (a.begin == Allocation::kBefore ? e.start : change[a.begin]) += a.requested;
    if (a.end != Allocation::kAfter) change[a.end] -= a.requested;
  }
  e.end = e.start;
  for (std::uint32_t event = 0; event < change.size(); ++event) {
    e.end += change[event];
    if (e.end > e.peak) e.peak = e.end, e.peak_event = event;
  }
}

class SnapshotKinds : public testing::Test {
 protected:
  void SetUp() override {
    if (!shared_data()) GTEST_SKIP() << "no captures on this computer";
  }
  static Explained explain(const std::string& name) {
    Explained e;
    e.recording = read_snapshot(*shared_data() / "traces/snapshots" / (name + ".pickle"));
    const DeviceRecording& device = e.recording.devices.at(0);
    e.table = tabulate_allocations(e.recording, device, find_start_state(device, e.recording.settings));
    find_peak(e);
    return e;
  }
};

// 22,696,448 parameters: embedding and head of 10,000 x 512, four layers of 4 x 512^2 + 3 x 512 x 1344, nine norms.
constexpr Bytes kSmall = 4 * (2 * 10'000 * 512 + 4 * (4 * 512 * 512 + 3 * 512 * 1'344) + 9 * 512);

TEST_F(SnapshotKinds, TheSmallModelFromTheFirstAllocationOn) {
  const Explained e = explain("lm_small_ctx100_train_from_empty");
  EXPECT_EQ(e.start, 0);
  EXPECT_EQ(e.end, 420'190'612);
  ASSERT_EQ(e.table.steps.size(), 3u);
  for (const RecordedStep& step : e.table.steps) {
    const auto bytes = e.by_kind(step.end - 1);
    EXPECT_EQ(bytes.at("parameter"), kSmall) << step.name;
    EXPECT_EQ(bytes.at("gradient"), kSmall) << step.name;
    EXPECT_EQ(bytes.at("optimizer_state"), 2 * kSmall) << step.name;
    EXPECT_EQ(bytes.at("input"), 8'080) << step.name;
    EXPECT_EQ(bytes.at("workspace"), 2 * 8'519'680) << "cuBLAS, for the threads of forward and backward";
    EXPECT_EQ(bytes.at("activation"), 40'000'004) << "logits and loss, which variables keep";
    EXPECT_EQ(bytes.size(), 6u);
    auto blocks = e.blocks_at(step.end - 1);
    EXPECT_EQ(blocks[Kind::parameter], 39u);
    EXPECT_EQ(blocks[Kind::gradient], 39u);
    EXPECT_EQ(blocks[Kind::optimizer_state], 78u);
  }
  // After construction, before the first step: parameters, and the states that this optimizer makes at once.
  const auto built = e.by_kind(e.table.steps[0].begin - 1);
  EXPECT_EQ(built.at("parameter"), kSmall);
  EXPECT_EQ(built.at("optimizer_state"), 2 * kSmall);
}

TEST_F(SnapshotKinds, TheSmallModelLeaksNothingAndKeepsItsLogits) {
  const Explained e = explain("lm_small_ctx100_train_from_empty");
  const LeakReport leaks = find_leaks(e.recording, e.table);
  EXPECT_TRUE(leaks.leaks.empty()) << leaks.leaks[0].line;
  EXPECT_EQ(leaks.why_not, "");
  ASSERT_EQ(leaks.at_step_end.size(), 3u);
  for (const Bytes bytes : leaks.at_step_end) EXPECT_EQ(bytes, 420'190'612);
  const auto held = find_late_frees(e.table, e.peak_event);
  ASSERT_EQ(held.size(), 1u);
  EXPECT_TRUE(held[0].rule.starts_with("Results of a forward pass"));
  EXPECT_EQ(held[0].most, 40'000'004);
}

TEST_F(SnapshotKinds, TheMediumModelIsRecordedFromTheMiddleOfItsTraining) {
  for (const char* name : {"lm_medium_ctx128_train", "lm_medium_ctx256_train"}) {
    const Explained e = explain(name);
    const bool long_context = std::string(name).find("256") != std::string::npos;
    // Requested bytes alive at the start, at the peak and at the end, in units of 1e5.
    EXPECT_EQ(e.start / 100'000, long_context ? 50'954 : 50'953) << name;
    EXPECT_EQ(e.peak / 100'000, long_context ? 91'035 : 70'133) << name;
    EXPECT_EQ(e.end / 100'000, long_context ? 68'290 : 68'085) << name;
    ASSERT_EQ(e.table.steps.size(), 1u) << name;
    const auto before = e.by_kind(Allocation::kBefore), after = e.by_kind(e.last_event());
    const Bytes parameters = after.at("parameter");
    EXPECT_EQ(parameters, 1'692'733'440) << name;
    EXPECT_EQ(after.at("gradient"), parameters) << name;
    EXPECT_EQ(after.at("optimizer_state"), 2 * parameters) << name;
    EXPECT_EQ(before.at("parameter"), parameters) << "in place from the beginning";
    EXPECT_EQ(before.at("optimizer_state"), 2 * parameters) << "each replaced by the step";
    EXPECT_EQ(before.at("workspace"), 2 * 8'519'680) << name;
    // Tokens, targets and tables of positions: nothing shows what they are.
    EXPECT_EQ(before.at("unknown"), long_context ? 163'840 : 81'920) << name;
    EXPECT_EQ(before.count("gradient"), 0u) << "dropped before the recording began";
    EXPECT_NE(find_leaks(e.recording, e.table).why_not, "") << name;
  }
}

TEST_F(SnapshotKinds, TheMediumModelPeaksInAnotherPhaseWithALongerContext) {
  const Explained shorter = explain("lm_medium_ctx128_train"), longer = explain("lm_medium_ctx256_train");
  EXPECT_EQ(shorter.table.phases[shorter.peak_event], Phase::optimizer);
  EXPECT_EQ(longer.table.phases[longer.peak_event], Phase::forward);
  const auto in_step = find_late_frees(shorter.table, shorter.peak_event);
  ASSERT_EQ(in_step.size(), 1u);
  EXPECT_EQ(in_step[0].at_peak, 4 * 128 * 10'000 * 4 + 4) << "logits and loss, which nobody reads any more";
  const LiveSet live = live_set_at(longer.recording, longer.table, longer.peak_event);
  EXPECT_EQ(live.requested, longer.peak);
  EXPECT_EQ(live.by_kind.front().name, "activation");
  // The layer's `Linear` is one line for all its uses.
  EXPECT_EQ(live.by_line[1].name, "model.py:39 forward");
}

TEST_F(SnapshotKinds, InferenceOfTheXlModel) {
  const Explained e = explain("lm_xl_ctx128_forward_expandable");
  EXPECT_EQ(e.start, 13'635'803'136);
  EXPECT_EQ(e.end, 13'635'803'136);
  const auto before = e.by_kind(Allocation::kBefore);
  // 32 layers of 2560 x 2560 (4) and 2560 x 10240 (3), embedding and head of 10,000 x 2560, 65 norms; the small rest
  // (tokens and positions) lives as long and cannot be told from them.
  const Bytes model =
      Bytes{4} * (32 * (Bytes{4} * 2'560 * 2'560 + 3 * 2'560 * 10'240) + 2 * 10'000 * 2'560 + 65 * 2'560);
  EXPECT_EQ(before.at("parameter"), model + 4'096 + 40'960);
  EXPECT_EQ(before.at("workspace"), 8'519'680);
  EXPECT_TRUE(e.table.steps.empty());
  EXPECT_NE(find_leaks(e.recording, e.table).why_not.find("0 whole training steps"), std::string::npos);
  for (const Allocation& a : e.table.allocations)
    if (a.begin != Allocation::kBefore) {
      EXPECT_EQ(a.phase, Phase::forward);
      EXPECT_TRUE(a.kind == Kind::workspace || a.kind == Kind::activation);
    }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
