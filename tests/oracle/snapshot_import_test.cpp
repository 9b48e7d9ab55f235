// Real memory snapshots against what an independent reader and replay found in them.
#include "models/workload/import/snapshot/snapshot_reader.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/shared_data.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Action = MemoryEvent::Action;

struct Expected {
  const char* file;
  std::size_t allocs, segment_allocs, segments, blocks;
  Bytes allocated, requested, reserved;
  bool expandable;
};

constexpr Expected kExpected[] = {
    {"lm_small_ctx100_train_from_empty", 3'853, 65, 65, 213, 423'759'360, 420'190'612, 786'432'000, false},
    {"lm_medium_ctx128_train", 6'526, 0, 377, 918, 6'816'891'392, 6'808'535'044, 7'235'174'400, false},
    {"lm_medium_ctx256_train", 6'624, 0, 495, 1'023, 6'837'944'832, 6'829'096'964, 9'265'217'536, false},
    {"lm_xl_ctx128_forward_expandable", 1'704, 0, 2, 297, 13'635'803'136, 13'635'803'136, 13'759'414'272, true}};

class SnapshotOfPyTorch : public ::testing::TestWithParam<Expected> {
 protected:
  void SetUp() override {
    const auto data = shared_data();
    if (!data) GTEST_SKIP() << "no shared data";
    path_ = *data / "traces/snapshots" / (std::string(GetParam().file) + ".pickle");
  }
  std::filesystem::path path_;
};

TEST_P(SnapshotOfPyTorch, HasTheKnownCounts) {
  const Expected& expected = GetParam();
  EXPECT_TRUE(is_pickle(path_));
  const MemoryRecording recording = read_snapshot(path_);
  ASSERT_EQ(recording.devices.size(), 1u);
  const DeviceRecording& device = recording.devices[0];
  const auto count = [&](Action action) {
    return static_cast<std::size_t>(std::ranges::count(device.events, action, &MemoryEvent::action));
  };
  EXPECT_EQ(count(Action::alloc), expected.allocs);
  EXPECT_EQ(count(Action::segment_alloc), expected.segment_allocs);
  EXPECT_EQ(count(Action::free_requested), count(Action::free_completed));
  EXPECT_EQ(count(Action::other), 0u);
  ASSERT_EQ(device.segments.size(), expected.segments);
  std::size_t blocks = 0;
  Bytes allocated = 0, requested = 0, reserved = 0;
  for (const RecordedSegment& segment : device.segments) {
    EXPECT_EQ(segment.expandable, expected.expandable);
    reserved += segment.size;
    blocks += segment.blocks.size();
    for (const RecordedBlock& block : segment.blocks) {
      if (block.state == RecordedBlock::State::inactive) continue;
      allocated += block.size;
      requested += block.requested;
    }
  }
  EXPECT_EQ(blocks, expected.blocks);
  EXPECT_EQ(allocated, expected.allocated);
  EXPECT_EQ(requested, expected.requested);
  EXPECT_EQ(reserved, expected.reserved);
}

TEST_P(SnapshotOfPyTorch, IsWholeAndConsistent) {
  const MemoryRecording recording = read_snapshot(path_);
  EXPECT_TRUE(recording.notes.empty()) << recording.notes[0];
  EXPECT_TRUE(recording.has_times);
  EXPECT_EQ(recording.settings.expandable_segments, GetParam().expandable);
  const auto& events = recording.devices[0].events;
  EXPECT_TRUE(std::ranges::is_sorted(events, {}, &MemoryEvent::time_us));
  // Each free_requested is followed by its free_completed, each segment_alloc by its alloc.
  for (std::size_t i = 0; i < events.size(); ++i) {
    ASSERT_EQ(events[i].stream, 0);
    if (events[i].action != Action::free_requested && events[i].action != Action::segment_alloc) continue;
    ASSERT_LT(i + 1, events.size());
    ASSERT_EQ(events[i + 1].action, events[i].action == Action::segment_alloc ? Action::alloc : Action::free_completed);
    ASSERT_EQ(events[i + 1].address, events[i].address);
  }
}

TEST_P(SnapshotOfPyTorch, HasFramesOfThePythonProgram) {
  const MemoryRecording recording = read_snapshot(path_);
  std::size_t with_forward = 0, with_backward = 0;
  for (const auto& stack : recording.stacks) {
    const auto has = [&](const std::string& part) {
      return std::ranges::any_of(stack, [&](std::uint32_t frame) {
        return recording.strings[recording.frames[frame].function].find(part) != std::string::npos;
      });
    };
    with_forward += has("forward");
    with_backward += has("torch::autograd::Engine::evaluate_function");
  }
  EXPECT_GT(with_forward, 10u);
  EXPECT_EQ(with_backward > 0, !GetParam().expandable);  // the expandable one is a forward pass alone
  // Frames come again and again; a few hundred are all there are.
  EXPECT_LT(recording.frames.size(), 1'000u);
  EXPECT_LT(recording.stacks.size(), 300u);
}

INSTANTIATE_TEST_SUITE_P(Files, SnapshotOfPyTorch, ::testing::ValuesIn(kExpected),
                         [](const auto& file) { return std::string(file.param.file); });

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
