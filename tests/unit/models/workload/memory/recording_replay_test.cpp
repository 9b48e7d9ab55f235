// Does a replay follow a recording's calls, and what does it say where they do not add up?
#include "models/workload/memory/recording_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "models/workload/memory/settings_search.h"
#include "tests/support/recording_builder.h"
#include "tests/support/resident_memory.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Action = MemoryEvent::Action;
using RetryStep = AllocatorObserver::RetryStep;

constexpr Address kBase = Address{1} << 33;
constexpr Bytes M = MiB(1);

class Scene {
 public:
  void event(Action action, Address address, Bytes size, StackId stack = 0, std::uint16_t stream = 0) {
    builder.event(action, address, size, stack, stream);
  }
  // A request that gets a segment of its own.
  void own(Address address, Bytes size, StackId stack = 0) {
    event(Action::segment_alloc, address, size, stack);
    event(Action::alloc, address, size, stack);
  }
  void free(Address address, Bytes size) {
    event(Action::free_requested, address, size);
    event(Action::free_completed, address, size);
  }
  RecordingReplay replay() { return replay_as_recorded(builder.recording(), builder.device(), start()); }
  RecordingReplay replay(const ReplayVariant& variant) {
    return replay_variant(builder.recording(), builder.device(), start(), variant);
  }
  StartState start() { return find_start_state(builder.device(), builder.recording().settings); }

  RecordingBuilder builder;
};

void expect_exact(const RecordingReplay& replay) {
  const ReplayCheck& check = *replay.check;
  EXPECT_EQ(check.placements_equal, check.allocs);
  EXPECT_EQ(check.segment_allocs_equal, check.segment_allocs_recorded);
  EXPECT_EQ(check.segment_frees_equal, check.segment_frees_recorded);
}

bool says(const RecordingReplay& replay, const std::string& words) {
  return std::any_of(replay.notes.begin(), replay.notes.end(),
                     [&](const std::string& note) { return note.find(words) != std::string::npos; });
}

bool has(const RecordingReplay& replay, RetryStep step) {
  return std::any_of(replay.retry_sequence.begin(), replay.retry_sequence.end(),
                     [&](const RecordedRetry& s) { return s.step == step; });
}

TEST(RecordingReplay, PendingBlocksAreActiveAndNotReused) {
  Scene scene;
  scene.event(Action::segment_alloc, kBase, 20 * M);
  scene.event(Action::alloc, kBase, 4 * M);
  scene.event(Action::free_requested, kBase, 4 * M);
  scene.event(Action::alloc, kBase + 4 * M, 4 * M);
  scene.event(Action::free_completed, kBase, 4 * M);
  scene.event(Action::alloc, kBase, 4 * M);
  const RecordingReplay replay = scene.replay();
  expect_exact(replay);
  EXPECT_EQ(replay.points[2].allocated, 0);
  EXPECT_EQ(replay.points[2].active, 4 * M);
  EXPECT_EQ(replay.points[2].requested, 4 * M);
  EXPECT_EQ(replay.points[3].allocated, 4 * M);
  EXPECT_EQ(replay.points[3].active, 8 * M);
  EXPECT_EQ(replay.points[4].active, 4 * M);
  EXPECT_EQ(replay.peak_event, 5u);
  EXPECT_EQ(replay.peak.blocks, 3u);
}

TEST(RecordingReplay, TheSegmentIsThereAtItsOwnEvent) {
  Scene scene;
  scene.own(kBase, 12 * M);
  const RecordingReplay replay = scene.replay();
  EXPECT_EQ(replay.points[0].reserved, 12 * M);
  EXPECT_EQ(replay.points[0].allocated, 0);
}

TEST(RecordingReplay, StreamsHaveTheirOwnCaches) {
  Scene scene;
  scene.own(kBase, 12 * M);
  scene.free(kBase, 12 * M);
  scene.event(Action::segment_alloc, kBase + 64 * M, 12 * M, 0, 1);
  scene.event(Action::alloc, kBase + 64 * M, 12 * M, 0, 1);
  expect_exact(scene.replay());
}

TEST(RecordingReplay, ARunOfReleasesIsOneCommand) {
  Scene scene;
  scene.event(Action::segment_alloc, kBase, 2 * M);
  scene.event(Action::alloc, kBase, 512);
  scene.own(kBase + 32 * M, 14 * M);
  scene.own(kBase + 64 * M, 12 * M);
  scene.free(kBase, 512);
  scene.free(kBase + 32 * M, 14 * M);
  scene.free(kBase + 64 * M, 12 * M);
  scene.event(Action::segment_free, kBase + 64 * M, 12 * M);
  scene.event(Action::segment_free, kBase + 32 * M, 14 * M);
  scene.event(Action::segment_free, kBase, 2 * M);
  scene.own(kBase, 40 * M);
  const RecordingReplay replay = scene.replay();
  expect_exact(replay);
  EXPECT_EQ(replay.check->segment_frees_recorded, 3u);
  EXPECT_EQ(replay.statistics.num_alloc_retries, 0);
  EXPECT_TRUE(says(replay, "1 releases of the cache, without frames"));
  const std::size_t first = scene.builder.device().events.size() - 5;
  EXPECT_EQ(replay.points[first].reserved, 16 * M);
  EXPECT_EQ(replay.points[first + 1].reserved, 2 * M);
  EXPECT_EQ(replay.points[first + 2].reserved, 0);
  EXPECT_TRUE(replay.retry_sequence.empty());
  // In another order it is not what the allocator does.
  std::swap(scene.builder.device().events[first], scene.builder.device().events[first + 2]);
  EXPECT_EQ(scene.replay().check->segment_frees_equal, 1u);
}

TEST(RecordingReplay, AReleaseByTheSameCallIsARetry) {
  Scene scene;
  const StackId model = scene.builder.stack({{"forward", "model.py", 1}});
  scene.own(kBase, 14 * M);
  scene.free(kBase, 14 * M);
  scene.event(Action::segment_free, kBase, 14 * M, model);
  scene.own(kBase, 40 * M, model);
  const RecordingReplay replay = scene.replay();
  expect_exact(replay);
  EXPECT_EQ(replay.statistics.num_alloc_retries, 1);
  EXPECT_FALSE(says(replay, "without frames"));
  ASSERT_EQ(replay.retry_sequence.size(), 3u);
  EXPECT_EQ(replay.retry_sequence[0].step, RetryStep::device_refused);
  EXPECT_EQ(replay.retry_sequence[0].free_in_cache, 14 * M);
  EXPECT_EQ(replay.retry_sequence[0].largest_free, 14 * M);
  EXPECT_EQ(replay.retry_sequence[1].step, RetryStep::release_cached);
  EXPECT_EQ(replay.retry_sequence[1].bytes, 14 * M);
  EXPECT_EQ(replay.retry_sequence[2].step, RetryStep::served);
  EXPECT_EQ(replay.retry_sequence[2].event, 6u);
  EXPECT_EQ(replay.retry_sequence[2].request, 40 * M);
}

// The oversize block does not suffice, so everything goes, once all streams were waited for.
TEST(RecordingReplay, AReleaseInTwoPartsIsOneRetry) {
  Scene scene;
  scene.builder.recording().settings.max_split_size = 30 * M;
  const StackId model = scene.builder.stack({{"forward", "model.py", 1}});
  scene.own(kBase, 40 * M);
  scene.own(kBase + 64 * M, 14 * M);
  scene.own(kBase + 128 * M, 12 * M);
  scene.free(kBase, 40 * M);
  scene.free(kBase + 64 * M, 14 * M);
  scene.event(Action::free_requested, kBase + 128 * M, 12 * M);
  scene.event(Action::segment_free, kBase, 40 * M, model);
  scene.event(Action::free_completed, kBase + 128 * M, 12 * M, model);
  scene.event(Action::segment_free, kBase + 128 * M, 12 * M, model);
  scene.event(Action::segment_free, kBase + 64 * M, 14 * M, model);
  scene.own(kBase + 256 * M, 62 * M, model);
  const RecordingReplay replay = scene.replay();
  expect_exact(replay);
  EXPECT_EQ(replay.statistics.num_alloc_retries, 1);
  EXPECT_TRUE(has(replay, RetryStep::release_available));
  EXPECT_EQ(replay.points[11].reserved, 26 * M);
  EXPECT_EQ(replay.points[13].reserved, 14 * M);
  EXPECT_EQ(replay.peak_reserved, 66 * M);
}

// No allocator writes this, but a file may hold it: looked at once, not once for each release.
TEST(RecordingReplay, ManyReleasesOfOneCallTakeNoLonger) {
  const auto processor_time = [](int releases) {
    Scene scene;
    const StackId model = scene.builder.stack({{"forward", "model.py", 1}});
    for (int i = 0; i < releases; ++i) {
      scene.event(Action::segment_free, kBase, 2 * M, model);
      scene.event(Action::free_completed, kBase, 512, model);
    }
    const std::clock_t begin = std::clock();
    scene.replay();
    return std::clock() - begin;
  };
  // Eight times as many: 8 times the time where each is looked at once, 64 times where it is for each release.
  EXPECT_LT(processor_time(160'000), 24 * std::max<std::clock_t>(processor_time(20'000), 1));
}

// What the retry waited for lies before the unmapped pages, and is large enough by itself.
TEST(RecordingReplay, ARetryMayObtainNothingInAnExpandableSegment) {
  Scene scene;
  scene.builder.recording().settings.expandable_segments = true;
  const StackId model = scene.builder.stack({{"forward", "model.py", 1}});
  scene.event(Action::segment_map, kBase, 20 * M);
  scene.event(Action::alloc, kBase, 20 * M);
  scene.event(Action::segment_map, kBase + (Address{1} << 38), 2 * M);
  scene.event(Action::alloc, kBase + (Address{1} << 38), 512);
  scene.free(kBase + (Address{1} << 38), 512);
  scene.event(Action::free_requested, kBase, 20 * M);
  scene.event(Action::free_completed, kBase, 20 * M, model);
  scene.event(Action::segment_unmap, kBase + (Address{1} << 38), 2 * M, model);
  scene.event(Action::alloc, kBase, 20 * M, model);
  const RecordingReplay replay = scene.replay();
  EXPECT_EQ(replay.statistics.num_alloc_retries, 1);
}

Scene out_of_memory() {
  Scene scene;
  scene.own(kBase, 30 * M);
  scene.own(kBase + 64 * M, 14 * M);
  scene.free(kBase + 64 * M, 14 * M);
  scene.event(Action::segment_free, kBase + 64 * M, 14 * M);
  scene.event(Action::oom, 20 * M, 60 * M);
  return scene;
}

TEST(RecordingReplay, ARecordedFailureFails) {
  Scene scene = out_of_memory();
  const RecordingReplay replay = scene.replay();
  expect_exact(replay);
  EXPECT_EQ(replay.statistics.num_ooms, 1);
  EXPECT_EQ(replay.statistics.num_alloc_retries, 1);
  EXPECT_TRUE(has(replay, RetryStep::out_of_memory));
  EXPECT_EQ(replay.end.reserved_bytes, 30 * M);
  EXPECT_TRUE(says(replay, "62914560 bytes found no memory"));
}

// Of a private pool that no segment names, for example: it failed all the same.
TEST(RecordingReplay, AFailureThatTheCacheServesIsCounted) {
  Scene scene;
  scene.own(kBase, 30 * M);
  scene.free(kBase, 30 * M);
  scene.event(Action::oom, 20 * M, 12 * M);
  const RecordingReplay replay = scene.replay();
  EXPECT_EQ(replay.statistics.num_ooms, 1);
  EXPECT_EQ(replay.end.allocated_bytes, 0);
  EXPECT_TRUE(says(replay, "failed that the cache serves here"));
}

TEST(RecordingReplay, AVariantTriesWhatFailed) {
  Scene scene = out_of_memory();
  ReplayVariant variant;
  variant.capacity = 90 * M;
  const RecordingReplay fits = scene.replay(variant);
  EXPECT_EQ(fits.missing, 0);
  EXPECT_EQ(fits.peak.allocated_bytes, 90 * M);
  EXPECT_TRUE(has(fits, RetryStep::served));
  EXPECT_FALSE(has(fits, RetryStep::out_of_memory));
  variant.capacity = 80 * M;
  const RecordingReplay too_small = scene.replay(variant);
  EXPECT_EQ(too_small.missing, 10 * M);
  EXPECT_TRUE(has(too_small, RetryStep::out_of_memory));
  EXPECT_TRUE(says(too_small, "taken as unlimited"));
}

// A retry of the variant waits for a block that the recording completes later: it is free once, not twice.
TEST(RecordingReplay, AVariantMayWaitForABlockEarlier) {
  Scene scene;
  scene.own(kBase, 40 * M);
  scene.event(Action::free_requested, kBase, 40 * M);
  scene.own(kBase + 64 * M, 30 * M);
  scene.event(Action::free_completed, kBase, 40 * M);
  ReplayVariant variant;
  variant.capacity = 50 * M;
  const RecordingReplay replay = scene.replay(variant);
  EXPECT_EQ(replay.missing, 0);
  EXPECT_EQ(replay.statistics.num_alloc_retries, 1);
  EXPECT_EQ(replay.points[4].active, 30 * M);
  EXPECT_EQ(replay.end.active_bytes, 30 * M);
  EXPECT_EQ(replay.end.requested_bytes, 30 * M);
  EXPECT_EQ(replay.end.reserved_bytes, 30 * M);
}

TEST(RecordingReplay, VariantsOfEveryAllocator) {
  Scene scene;
  scene.own(kBase, 13 * M - 1);
  scene.own(kBase + 64 * M, 15 * M);
  scene.free(kBase + 64 * M, 15 * M);
  for (const std::string& name : allocator_names()) {
    ReplayVariant variant;
    variant.allocator = name;
    const RecordingReplay replay = scene.replay(variant);
    EXPECT_EQ(replay.end.requested_bytes, 13 * M - 1) << name;
    EXPECT_GE(replay.peak_reserved, 28 * M - 1) << name;
    EXPECT_EQ(replay.statistics.reserved_bytes[0].peak, replay.peak_reserved) << name;
  }
}

TEST(RecordingReplay, TheStartStateKeepsItsPlaceOrIsAllocatedAnew) {
  Scene scene;
  RecordedSegment segment;
  segment.address = kBase;
  segment.size = 40 * M;
  segment.blocks.push_back({kBase + 20 * M, 12 * M, 12 * M, 0, RecordedBlock::State::allocated});
  scene.builder.device().segments.push_back(segment);
  segment.address = kBase + 100 * M;
  segment.blocks.clear();
  scene.builder.device().segments.push_back(segment);
  const auto with = [&](Bytes capacity, const char* settings) {
    ReplayVariant variant;
    variant.capacity = capacity;
    variant.settings = parse_allocator_settings(settings);
    return scene.replay(variant);
  };
  EXPECT_EQ(with(GiB(1), "").start.reserved_bytes, 80 * M);
  EXPECT_EQ(with(50 * M, "").start.reserved_bytes, 40 * M);
  EXPECT_TRUE(says(with(50 * M, ""), "Wholly free"));
  EXPECT_EQ(with(30 * M, "").start.reserved_bytes, 12 * M);
  EXPECT_TRUE(says(with(30 * M, ""), "allocated anew"));
  EXPECT_EQ(with(GiB(1), "expandable_segments:True").start.reserved_bytes, 20 * M);
  EXPECT_EQ(with(10 * M, "").missing, 2 * M);
}

TEST(RecordingReplay, PrivatePoolsAreToldByTheSegment) {
  Scene scene;
  scene.own(kBase, 12 * M);
  scene.free(kBase, 12 * M);
  scene.own(kBase + 64 * M, 12 * M);  // of the pool: the free block of the default pools is not for it
  RecordedSegment segment;
  segment.address = kBase + 64 * M;
  segment.size = 12 * M;
  segment.pool = {0, 1};
  segment.blocks.push_back({segment.address, 12 * M, 12 * M, 0, RecordedBlock::State::allocated});
  scene.builder.device().segments.push_back(segment);
  const RecordingReplay replay = scene.replay();
  expect_exact(replay);
  EXPECT_TRUE(says(replay, "1 private pools"));
  EXPECT_EQ(replay.check->final_blocks_equal, 1u);
  EXPECT_EQ(replay.check->final_segments_equal, 1u);
  scene.builder.device().segments[0].stream = 1;
  EXPECT_EQ(scene.replay().check->final_segments_equal, 0u);
}

// The state at the peak is found by a second replay, which needs no points.
TEST(RecordingReplay, PointsAreKeptOnce) {
  if (!kFreedMemoryIsReused) GTEST_SKIP() << "a sanitizer keeps what was freed";
  Scene scene;
  scene.event(Action::segment_alloc, kBase, 20 * M);
  constexpr std::size_t kEvents = 1'000'000;
  scene.builder.device().events.reserve(kEvents + 100);
  while (scene.builder.device().events.size() < kEvents) {
    scene.event(Action::alloc, kBase, 2 * M);
    scene.free(kBase, 2 * M);
  }
  scene.event(Action::alloc, kBase, 4 * M);
  const StartState start = scene.start();
  const Bytes before = most_resident();
  const RecordingReplay replay = replay_as_recorded(scene.builder.recording(), scene.builder.device(), start);
  EXPECT_EQ(replay.peak_event + std::size_t{1}, scene.builder.device().events.size());
  EXPECT_EQ(replay.peak.allocated_bytes, 4 * M);
  EXPECT_LT(most_resident() - before, static_cast<Bytes>(kEvents * sizeof(MemoryLevels) * 3 / 2));
}

TEST(RecordingReplay, NonsenseIsSaidAndPassedOver) {
  Scene scene;
  scene.own(kBase, 12 * M);
  scene.event(Action::alloc, kBase, 4 * M);
  scene.event(Action::free_requested, kBase + 512, 4 * M);
  scene.event(Action::free_completed, kBase + 512, 4 * M);
  scene.event(Action::free_requested, 0, 4 * M);
  scene.event(Action::alloc, 0, 512);
  scene.event(Action::alloc, kBase + GiB(1), std::numeric_limits<Bytes>::max());
  scene.event(Action::alloc, ~Address{0}, 512);
  scene.event(Action::alloc, kBase + GiB(2), 0);
  scene.event(Action::segment_free, ~Address{0}, std::numeric_limits<Bytes>::min());
  scene.event(Action::segment_alloc, kBase, std::numeric_limits<Bytes>::max());
  scene.event(Action::oom, 0, -5);
  for (int i = 0; i < 100'000; ++i) scene.event(Action::alloc, kBase + GiB(4) + 512 * i, Bytes{1} << 44);
  const RecordingReplay replay = scene.replay();
  EXPECT_TRUE(says(replay, "is allocated, but in use"));
  EXPECT_TRUE(says(replay, "which is not in use"));
  EXPECT_TRUE(says(replay, "is passed over"));
  EXPECT_EQ(replay.points.size(), scene.builder.device().events.size());
  EXPECT_LE(replay.peak_reserved, Bytes{1} << 60);
}

TEST(SettingsSearch, RowsAreReplaysInOrder) {
  Scene scene;
  // Small holes between blocks that stay: expandable segments reserve less.
  for (int i = 0; i < 8; ++i) scene.event(Action::alloc, kBase + 64 * M * static_cast<Address>(i), 11 * M);
  for (int i = 0; i < 8; ++i) scene.free(kBase + 64 * M * static_cast<Address>(i), 11 * M);
  scene.event(Action::alloc, kBase, 88 * M);
  double last = 0;
  const auto search = [&](Bytes capacity) {
    last = 0;
    return search_settings(scene.builder.recording(), scene.builder.device(), {}, capacity, [&](double share) {
      EXPECT_GE(share, last);
      last = share;
    });
  };
  const std::vector<SearchRow> rows = search(Bytes{1} << 60);
  EXPECT_EQ(last, 1);
  const auto row = [&](const std::vector<SearchRow>& all, const std::string& name) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const SearchRow& r) { return r.name == name; });
    EXPECT_NE(found, all.end()) << name;
    return *found;
  };
  EXPECT_EQ(row(rows, "lower bound of any plan (not a setting)").peak_reserved, 88 * M);
  EXPECT_LE(row(rows, "expandable_segments:True").peak_reserved, 100 * M);
  EXPECT_EQ(row(rows, "").peak_reserved, 8 * 12 * M + 88 * M);
  for (std::size_t i = 1; i < rows.size(); ++i) EXPECT_LE(rows[i - 1].peak_reserved, rows[i].peak_reserved);
  for (const SearchRow& r : rows) {
    if (r.variant.allocator == "planned") continue;
    EXPECT_EQ(scene.replay(r.variant).peak_reserved, r.peak_reserved) << r.name;
  }
  const std::vector<SearchRow> again = search(Bytes{1} << 60);
  ASSERT_EQ(again.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(again[i].name, rows[i].name);
  // What fits comes first.
  const std::vector<SearchRow> limited = search(120 * M);
  EXPECT_EQ(row(limited, "").retries, 1);
  EXPECT_EQ(row(limited, "").missing, 0);
  EXPECT_TRUE(std::is_sorted(limited.begin(), limited.end(),
                             [](const SearchRow& a, const SearchRow& b) { return (a.missing > 0) < (b.missing > 0); }));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
