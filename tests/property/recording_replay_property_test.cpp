// Whatever an allocator did, its recording replays: from empty, and from the middle on.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "models/workload/memory/recording_replay.h"
#include "tests/support/recorded_run.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Action = MemoryEvent::Action;

const char* const kSettings[] = {"", "expandable_segments:True", "roundup_power2_divisions:4",
                                 "large_segment_size_mb:32", "max_split_size_mb:30"};

RecordedRunOptions random_options(bool limited) {
  RecordedRunOptions options;
  options.settings = parse_allocator_settings(
      *rc::gen::elementOf(std::vector<std::string>(std::begin(kSettings), std::end(kSettings))));
  options.seed = *rc::gen::arbitrary<std::uint64_t>();
  options.streams = *rc::gen::inRange(1, 4);
  options.late_completions = *rc::gen::arbitrary<bool>();
  if (limited) {
    options.capacity = MiB(*rc::gen::inRange(200, 900));
    // An oversize release looks like a cut-short one, and does not synchronize: what was pending is not told then.
    options.settings.max_split_size = AllocatorSettings::kNoLimit;
    // What a wait completed and what had completed before look alike where nothing was released between.
    if (options.settings.expandable_segments) options.late_completions = false;
  }
  return options;
}

void expect_exact(const RecordingReplay& replay) {
  const ReplayCheck& check = *replay.check;
  RC_ASSERT(check.placements_equal == check.allocs);
  RC_ASSERT(check.segment_allocs_equal == check.segment_allocs_recorded);
  RC_ASSERT(check.segment_frees_equal == check.segment_frees_recorded);
  RC_ASSERT(check.final_segments_equal == check.final_segments);
  RC_ASSERT(check.final_blocks_equal == check.final_blocks);
}

// Blocks in use at the same places, none longer than it was.
void expect_same_blocks(const std::vector<SegmentState>& found, const std::vector<SegmentState>& truth) {
  const auto used = [](const std::vector<SegmentState>& segments) {
    std::vector<BlockState> blocks;
    for (const SegmentState& segment : segments)
      for (const BlockState& block : segment.blocks)
        if (block.use == BlockState::Use::in_use || block.use == BlockState::Use::pending) blocks.push_back(block);
    return blocks;
  };
  const std::vector<BlockState> a = used(found), b = used(truth);
  RC_ASSERT(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    RC_ASSERT(a[i].address == b[i].address && a[i].use == b[i].use && a[i].requested == b[i].requested);
    RC_ASSERT(a[i].size <= b[i].size && b[i].size - a[i].size <= MiB(1));
  }
}

RC_GTEST_PROP(RecordingReplay, ReplaysFromEmpty, ()) {
  const RecordedRun run(random_options(*rc::gen::arbitrary<bool>()));
  const MemoryRecording recording = run.recording();
  const StartState start = find_start_state(recording.devices[0], recording.settings);
  RC_ASSERT(start.empty);
  const RecordingReplay replay = replay_as_recorded(recording, recording.devices[0], start);
  expect_exact(replay);
  const auto ooms = std::count_if(recording.devices[0].events.begin(), recording.devices[0].events.end(),
                                  [](const MemoryEvent& event) { return event.action == Action::oom; });
  RC_ASSERT(replay.statistics.num_ooms == ooms);
  RC_ASSERT(replay.points.back().reserved == replay.statistics.reserved_bytes[0].current);
  RC_ASSERT(replay.points.back().active == replay.statistics.active_bytes[0].current);
  RC_ASSERT(replay.points.back().allocated == replay.statistics.allocated_bytes[0].current);
  RC_ASSERT(replay.points.back().requested == replay.statistics.requested_bytes[0].current);
}

// Found by the property: a request that failed had reserved an expandable segment, which only a later request mapped.
TEST(RecordingReplay, AReservationOfAFailedRequestIsFoundLater) {
  RecordedRunOptions options;
  options.settings.expandable_segments = true;
  options.seed = 7955266;
  options.streams = 2;
  options.capacity = MiB(206);
  const MemoryRecording recording = RecordedRun(options).recording();
  const StartState start = find_start_state(recording.devices[0], recording.settings);
  const RecordingReplay replay = replay_as_recorded(recording, recording.devices[0], start);
  EXPECT_GT(replay.check->allocs, 100u);
  EXPECT_EQ(replay.check->placements_equal, replay.check->allocs);
  EXPECT_EQ(replay.check->segment_allocs_equal, replay.check->segment_allocs_recorded);
}

// Found by the property: a program that gave everything back has no segments in the end, which contradicts nothing.
TEST(RecordingReplay, ARecordingThatEndsEmptyHasAStartState) {
  RecordedRunOptions options;
  options.settings = parse_allocator_settings("roundup_power2_divisions:4");
  options.seed = 2400;
  options.late_completions = true;
  const RecordedRun run(options);
  const MemoryRecording recording = run.recording();
  DeviceRecording cut = recording.devices[0];
  ASSERT_TRUE(cut.segments.empty()) << "the run was chosen for that";
  const std::size_t at = 2;  // the first call made one block
  cut.events.erase(cut.events.begin(), cut.events.begin() + at);
  const StartState start = find_start_state(cut, recording.settings);
  EXPECT_TRUE(start.contradictions.empty());
  EXPECT_EQ(start.segments, run.states[at]);
}

// A call whose first events a ring buffer lost is not whole; the buffer is cut between calls here.
RC_GTEST_PROP(RecordingReplay, ReplaysFromTheMiddle, ()) {
  const RecordedRun run(random_options(*rc::gen::arbitrary<bool>()));
  const MemoryRecording whole = run.recording();
  const StartState empty = find_start_state(whole.devices[0], whole.settings);
  std::size_t at = static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(run.states.size())));
  while (at < run.states.size() && run.states[at].empty()) ++at;
  if (at >= run.states.size()) return;
  DeviceRecording cut = whole.devices[0];
  cut.events.erase(cut.events.begin(), cut.events.begin() + static_cast<std::ptrdiff_t>(at));
  const StartState start = find_start_state(cut, whole.settings);
  RC_ASSERT(start.contradictions.empty());
  if (start.empty) return;
  // A remainder that no later allocation shows is not found, and then may matter; nothing else may be wrong.
  const bool found = whole.settings.expandable_segments || start.segments == run.states[at];
  RC_CLASSIFY(found);
  if (found) expect_exact(replay_as_recorded(whole, cut, start));
  if (!whole.settings.expandable_segments) expect_same_blocks(start.segments, run.states[at]);
  // The replay of the whole has that state, too.
  RC_ASSERT(segments_after(whole, whole.devices[0], empty, static_cast<std::uint32_t>(at - 1)).size() ==
            run.states[at].size());
}

RC_GTEST_PROP(RecordingReplay, DamageNeitherCrashesNorHangs, ()) {
  const RecordedRun run(random_options(true));
  MemoryRecording recording = run.recording();
  DeviceRecording& device = recording.devices[0];
  std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
  for (int i = 0; i < 30; ++i) {
    MemoryEvent& event = device.events[random() % device.events.size()];
    const MemoryEvent& other = device.events[random() % device.events.size()];
    switch (random() % 6) {
      case 0:
        event.address = other.address;
        break;
      case 1:
        event.size = static_cast<Bytes>(random() >> (random() % 64));
        break;
      case 2:
        event.action = static_cast<Action>(random() % 10);
        break;
      case 3:
        event.stream = static_cast<std::uint16_t>(random() % 3);
        break;
      case 4:
        if (!device.segments.empty()) device.segments[random() % device.segments.size()].address = other.address;
        break;
      default:
        if (!device.segments.empty()) device.segments[random() % device.segments.size()].size = other.size;
    }
  }
  const StartState start = find_start_state(device, recording.settings);
  const RecordingReplay replay = replay_as_recorded(recording, device, start);
  RC_ASSERT(replay.points.size() == device.events.size());
  ReplayVariant variant;
  variant.capacity = MiB(300);
  variant.settings.expandable_segments = random() % 2 == 0;
  RC_ASSERT(replay_variant(recording, device, start, variant).points.size() == device.events.size());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
