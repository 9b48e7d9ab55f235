// Do real snapshots replay byte for byte? The expected totals were made by an independent model.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/support/snapshots.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Action = MemoryEvent::Action;

struct Expected {
  const char* file;
  MemoryTotals start;  // of which allocated, requested, active: not looked at
  std::uint64_t live_at_start, allocs, segment_allocs;
  MemoryTotals end;
  double start_megabytes, peak_megabytes;  // requested, in 10^6 bytes, one digit; 0 = not known
};

const Expected kExpected[] = {
    {kFromEmpty, {0, 0, 0, 0, 0, 0}, 0, 3'853, 65, {423'759'360, 786'432'000, 423'759'360, 420'190'612, 65, 213}, 0, 0},
    {kMedium128,
     {0, 7'235'174'400, 0, 0, 377, 0},
     664,
     6'526,
     0,
     {6'816'891'392, 7'235'174'400, 6'816'891'392, 6'808'535'044, 377, 918},
     5095.3,
     7013.3},
    {kMedium256,
     {0, 9'265'217'536, 0, 0, 495, 0},
     664,
     6'624,
     0,
     {6'837'944'832, 9'265'217'536, 6'837'944'832, 6'829'096'964, 495, 1'023},
     5095.4,
     9103.5},
    {kExpandable,
     {0, 13'759'414'272, 0, 0, 2, 0},
     294,
     1'704,
     0,
     {13'635'803'136, 13'759'414'272, 13'635'803'136, 13'635'803'136, 2, 297},
     0,
     0},
};

std::uint64_t blocks_in_use(const StartState& start) {
  std::uint64_t blocks = 0;
  for (const SegmentState& segment : start.segments)
    blocks += static_cast<std::uint64_t>(std::count_if(segment.blocks.begin(), segment.blocks.end(),
                                                       [](const auto& b) { return b.use == BlockState::Use::in_use; }));
  return blocks;
}

void expect_exact(const ReplayCheck& check) {
  EXPECT_EQ(check.placements_checked, check.allocs);
  EXPECT_EQ(check.placements_equal, check.allocs);
  EXPECT_EQ(check.segment_allocs_equal, check.segment_allocs_recorded);
  EXPECT_EQ(check.segment_frees_equal, check.segment_frees_recorded);
  EXPECT_EQ(check.final_segments_equal, check.final_segments);
  EXPECT_EQ(check.final_blocks_equal, check.final_blocks);
}

bool exact(const ReplayCheck& check) {
  return check.placements_equal == check.allocs && check.segment_allocs_equal == check.segment_allocs_recorded &&
         check.final_segments_equal == check.final_segments && check.final_blocks_equal == check.final_blocks;
}

Bytes most_requested(const RecordingReplay& replay) {
  Bytes most = replay.start.requested_bytes;
  for (const MemoryLevels& point : replay.points) most = std::max(most, point.requested);
  return most;
}

TEST(SnapshotReplay, EveryPlacementAndTotalIsExact) {
  for (const Expected& expected : kExpected) {
    SCOPED_TRACE(expected.file);
    const auto recording = shared_snapshot(expected.file);
    if (!recording) GTEST_SKIP() << "no captures";
    ASSERT_EQ(recording->devices.size(), 1u);
    const DeviceRecording& device = recording->devices[0];
    const StartState start = find_start_state(device, recording->settings);
    EXPECT_EQ(start.empty, expected.live_at_start == 0);
    EXPECT_TRUE(start.contradictions.empty()) << start.contradictions[0];
    EXPECT_EQ(blocks_in_use(start), expected.live_at_start);
    const RecordingReplay replay = replay_as_recorded(*recording, device, start);
    EXPECT_TRUE(replay.notes.empty()) << replay.notes[0];
    EXPECT_EQ(replay.start.segments, expected.start.segments);
    EXPECT_EQ(replay.start.reserved_bytes, expected.start.reserved_bytes);
    EXPECT_EQ(replay.end.allocated_bytes, expected.end.allocated_bytes);
    EXPECT_EQ(replay.end.active_bytes, expected.end.active_bytes);
    EXPECT_EQ(replay.end.requested_bytes, expected.end.requested_bytes);
    EXPECT_EQ(replay.end.reserved_bytes, expected.end.reserved_bytes);
    EXPECT_EQ(replay.end.segments, expected.end.segments);
    EXPECT_EQ(replay.end.blocks, expected.end.blocks);
    expect_exact(*replay.check);
    EXPECT_EQ(replay.check->allocs, expected.allocs);
    EXPECT_EQ(replay.check->segment_allocs_recorded, expected.segment_allocs);
    EXPECT_EQ(replay.check->final_segments, expected.end.segments);
    EXPECT_EQ(replay.check->final_blocks, expected.end.blocks);
    if (expected.peak_megabytes == 0) continue;
    EXPECT_NEAR(static_cast<double>(replay.start.requested_bytes) / 1e6, expected.start_megabytes, 0.05);
    EXPECT_NEAR(static_cast<double>(most_requested(replay)) / 1e6, expected.peak_megabytes, 0.05);
  }
}

// What the allocator counts, and what the replay adds up from the calls, are two ways to the same numbers.
TEST(SnapshotReplay, StatisticsAgreeWithTotals) {
  for (const Expected& expected : kExpected) {
    SCOPED_TRACE(expected.file);
    const auto recording = shared_snapshot(expected.file);
    if (!recording) GTEST_SKIP() << "no captures";
    const RecordingReplay replay = replay_found(*recording, recording->devices[0]);
    EXPECT_EQ(replay.statistics.allocated_bytes[0].current, replay.end.allocated_bytes);
    EXPECT_EQ(replay.statistics.allocated_bytes[0].peak, replay.peak.allocated_bytes);
    EXPECT_EQ(replay.statistics.active_bytes[0].current, replay.end.active_bytes);
    EXPECT_EQ(replay.statistics.active_bytes[0].peak, replay.peak_active);
    EXPECT_EQ(replay.statistics.requested_bytes[0].current, replay.end.requested_bytes);
    EXPECT_EQ(replay.statistics.requested_bytes[0].peak, most_requested(replay));
    EXPECT_EQ(replay.statistics.reserved_bytes[0].peak, replay.peak_reserved);
    EXPECT_EQ(replay.points.back().allocated, replay.end.allocated_bytes);
    EXPECT_EQ(replay.points[replay.peak_event].allocated, replay.peak.allocated_bytes);
    EXPECT_EQ(replay.statistics.num_alloc_retries, 0);
  }
}

TEST(SnapshotReplay, FromEmptyNeedsNoSegments) {
  const auto recording = shared_snapshot(kFromEmpty);
  if (!recording) GTEST_SKIP() << "no captures";
  DeviceRecording device = recording->devices[0];
  const RecordingReplay with = replay_found(*recording, device);
  device.segments.clear();
  const RecordingReplay without = replay_found(*recording, device);
  const auto same = [](const MemoryTotals& a, const MemoryTotals& b) {
    return a.allocated_bytes == b.allocated_bytes && a.reserved_bytes == b.reserved_bytes &&
           a.active_bytes == b.active_bytes && a.requested_bytes == b.requested_bytes && a.segments == b.segments &&
           a.blocks == b.blocks;
  };
  EXPECT_TRUE(same(with.start, without.start));
  EXPECT_TRUE(same(with.peak, without.peak));
  EXPECT_TRUE(same(with.end, without.end));
  EXPECT_EQ(with.peak_event, without.peak_event);
  EXPECT_EQ(with.end_segments, without.end_segments);
  EXPECT_EQ(without.check->placements_equal, 3'853u);
  EXPECT_EQ(without.check->final_segments, 0u);
  ASSERT_EQ(with.points.size(), without.points.size());
  for (std::size_t i = 0; i < with.points.size(); ++i) {
    ASSERT_EQ(with.points[i].allocated, without.points[i].allocated);
    ASSERT_EQ(with.points[i].reserved, without.points[i].reserved);
    ASSERT_EQ(with.points[i].requested, without.points[i].requested);
  }
}

// A block whose remainder only a later allocation shows.
TEST(SnapshotReplay, CutNeedsTheLookAhead) {
  const auto recording = shared_snapshot(kFromEmpty);
  if (!recording) GTEST_SKIP() << "no captures";
  const DeviceRecording cut = without_first(recording->devices[0], 3'950);
  const Address address = 0x523e00000 + 2'752'512;
  const auto size_of_it = [&](bool look_ahead) {
    for (const SegmentState& segment : find_start_state(cut, recording->settings, look_ahead).segments)
      for (const BlockState& block : segment.blocks)
        if (block.address == address) return block.size;
    return Bytes{0};
  };
  EXPECT_EQ(size_of_it(true) - size_of_it(false), 638'976);
  const ReplayCheck with = *replay_found(*recording, cut).check;
  const ReplayCheck without = *replay_found(*recording, cut, false).check;
  expect_exact(with);
  EXPECT_EQ(without.placements_checked - without.placements_equal, 493u);
}

// The state that the recording from empty has at an event is what the rest of the recording alone must show.
TEST(SnapshotReplay, StartStateOfEveryCutIsTheTrueOne) {
  const auto recording = shared_snapshot(kFromEmpty);
  if (!recording) GTEST_SKIP() << "no captures";
  const DeviceRecording& whole = recording->devices[0];
  const StartState empty = find_start_state(whole, recording->settings);
  constexpr Address kNeverShown =
      0x523e00000;  // its remainder of 638,976 bytes matters to no allocation after event 5,719
  std::uint64_t different = 0, cuts = 0, with_pending = 0;
  for (std::size_t at = 97; at < whole.events.size(); at += 97) {
    std::size_t begin = at;
    if (whole.events[begin - 1].action == Action::segment_alloc) ++begin;  // the replay makes it with its alloc
    SCOPED_TRACE(begin);
    const DeviceRecording cut = without_first(whole, begin);
    const StartState found = find_start_state(cut, recording->settings);
    EXPECT_TRUE(found.contradictions.empty());
    const auto truth = segments_after(*recording, whole, empty, static_cast<std::uint32_t>(begin - 1));
    ASSERT_EQ(found.segments.size(), truth.size());
    for (std::size_t i = 0; i < truth.size(); ++i) {
      if (found.segments[i] == truth[i]) continue;
      EXPECT_EQ(truth[i].address, kNeverShown);
      ++different;
    }
    ++cuts;
    with_pending += whole.events[begin].action == Action::free_completed;
    expect_exact(*replay_as_recorded(*recording, cut, found).check);
  }
  EXPECT_GT(cuts, 100u);
  EXPECT_GT(with_pending, 10u);
  EXPECT_LE(different, 6u);
}

TEST(SnapshotReplay, VariantWithTheRecordedSettingsIsTheRecording) {
  for (const Expected& expected : kExpected) {
    SCOPED_TRACE(expected.file);
    const auto recording = shared_snapshot(expected.file);
    if (!recording) GTEST_SKIP() << "no captures";
    const DeviceRecording& device = recording->devices[0];
    const StartState start = find_start_state(device, recording->settings);
    const RecordingReplay as_it_was = replay_as_recorded(*recording, device, start);
    ReplayVariant variant;
    variant.settings = recording->settings;
    const RecordingReplay again = replay_variant(*recording, device, start, variant);
    EXPECT_EQ(again.end_segments, as_it_was.end_segments);
    EXPECT_EQ(again.peak.blocks, as_it_was.peak.blocks);
    EXPECT_EQ(again.peak_reserved, as_it_was.peak_reserved);
    EXPECT_FALSE(again.check.has_value());
    EXPECT_EQ(again.missing, 0);
    EXPECT_TRUE(again.retry_sequence.empty());
  }
}

// Controls: a check that nothing upsets proves nothing.
TEST(SnapshotReplay, ExchangedSegmentsAreNoticed) {
  const auto recording = shared_snapshot(kFromEmpty);
  if (!recording) GTEST_SKIP() << "no captures";
  DeviceRecording device = recording->devices[0];
  std::vector<std::size_t> shared;  // segments of 20 MiB, which hold several blocks
  for (std::size_t i = 0; i < device.events.size(); ++i)
    if (device.events[i].action == Action::segment_alloc && device.events[i].size == MiB(20)) shared.push_back(i);
  ASSERT_GE(shared.size(), 2u);
  std::swap(device.events[shared[0]].address, device.events[shared[1]].address);
  EXPECT_FALSE(exact(*replay_as_recorded(*recording, device, StartState{}).check));
}

TEST(SnapshotReplay, AChangedSizeIsNoticed) {
  for (const char* file : {kFromEmpty, kMedium128}) {
    const auto recording = shared_snapshot(file);
    if (!recording) GTEST_SKIP() << "no captures";
    DeviceRecording device = recording->devices[0];
    const auto big = std::find_if(device.events.begin() + 200, device.events.end(), [](const MemoryEvent& event) {
      return event.action == Action::alloc && event.size > MiB(1) && event.size < MiB(10);
    });
    ASSERT_NE(big, device.events.end());
    big->size += MiB(2);
    EXPECT_FALSE(exact(*replay_found(*recording, device).check)) << file;
  }
}

TEST(SnapshotReplay, AMissingFreeIsNoticed) {
  for (const char* file : {kFromEmpty, kMedium128}) {
    const auto recording = shared_snapshot(file);
    if (!recording) GTEST_SKIP() << "no captures";
    DeviceRecording device = recording->devices[0];
    const auto free = std::find_if(device.events.begin() + 1000, device.events.end(), [](const MemoryEvent& event) {
      return event.action == Action::free_requested && event.size > MiB(1);
    });
    ASSERT_NE(free, device.events.end());
    device.events.erase(free, free + 2);
    const StartState start = find_start_state(device, recording->settings);
    const RecordingReplay replay = replay_as_recorded(*recording, device, start);
    EXPECT_FALSE(start.contradictions.empty() && replay.notes.empty()) << file;
    // Where the address is allocated again soon after, the replay takes the block as freed, says so, and goes on.
    if (start.empty) {
      EXPECT_FALSE(exact(*replay.check));
    }
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
