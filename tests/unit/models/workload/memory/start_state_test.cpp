// What was there before a recording began, and what does a file say that contradicts itself?
#include "models/workload/memory/start_state.h"

#include <gtest/gtest.h>

#include <functional>

#include "models/workload/memory/recording_replay.h"
#include "tests/support/recording_builder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Action = MemoryEvent::Action;
using Use = BlockState::Use;
using State = RecordedBlock::State;

constexpr Address kBase = Address{1} << 33;
constexpr Bytes M = MiB(1);

// Events at chosen places of chosen segments.
class Scene {
 public:
  RecordedSegment& segment(Address address, Bytes size, bool small_pool = false, bool expandable = false) {
    RecordedSegment segment;
    segment.address = address;
    segment.size = size;
    segment.small_pool = small_pool;
    segment.expandable = expandable;
    device().segments.push_back(segment);
    return device().segments.back();
  }
  static void block(RecordedSegment& segment, Address address, Bytes size, State state = State::allocated) {
    segment.blocks.push_back({address, size, size, 0, state});
  }
  void alloc(Address address, Bytes size) { builder.event(Action::alloc, address, size); }
  void free(Address address, Bytes size) {
    builder.event(Action::free_requested, address, size);
    builder.event(Action::free_completed, address, size);
  }
  StartState start(const AllocatorSettings& settings = {}, bool look_ahead = true) {
    return find_start_state(device(), settings, look_ahead);
  }
  DeviceRecording& device() { return builder.device(); }

  RecordingBuilder builder;
};

std::vector<BlockState> blocks(const StartState& start, std::size_t segment = 0) {
  return segment < start.segments.size() ? start.segments[segment].blocks : std::vector<BlockState>{};
}

TEST(StartState, ARecordingThatShowsEverythingBeginsEmpty) {
  Scene scene;
  scene.builder.event(Action::segment_alloc, kBase, 20 * M);
  scene.alloc(kBase, 4 * M);
  scene.free(kBase, 4 * M);
  EXPECT_TRUE(scene.start().empty);
  EXPECT_TRUE(scene.start().segments.empty());
}

TEST(StartState, NothingAtAllIsEmpty) { EXPECT_TRUE(Scene().start().empty); }

// Nothing in the window touches it, and yet it was there.
TEST(StartState, AnUntouchedSegmentWasThereBefore) {
  Scene scene;
  scene.builder.event(Action::segment_alloc, kBase, 20 * M);
  scene.alloc(kBase, 4 * M);
  scene.free(kBase, 4 * M);
  auto& old = scene.segment(kBase + 64 * M, 12 * M);
  Scene::block(old, old.address, 12 * M);
  scene.segment(kBase, 20 * M);
  const StartState start = scene.start();
  EXPECT_FALSE(start.empty);
  ASSERT_EQ(start.segments.size(), 1u);
  EXPECT_EQ(start.segments[0].address, kBase + 64 * M);
  EXPECT_TRUE(start.contradictions.empty());
}

TEST(StartState, AllocsAreUndoneAndFreesToo) {
  Scene scene;
  auto& segment = scene.segment(kBase, 40 * M);
  Scene::block(segment, kBase, 4 * M);
  Scene::block(segment, kBase + 10 * M, 6 * M);
  scene.alloc(kBase + 10 * M, 6 * M);
  scene.free(kBase + 20 * M, 2 * M + 100);
  const StartState start = scene.start();
  EXPECT_TRUE(start.contradictions.empty());
  const std::vector<BlockState> expected{{kBase, 4 * M, 4 * M, Use::in_use},
                                         {kBase + 4 * M, 16 * M, 0, Use::free},
                                         {kBase + 20 * M, 2 * M + 512, 2 * M + 100, Use::in_use},
                                         {kBase + 22 * M + 512, 18 * M - 512, 0, Use::free}};
  EXPECT_EQ(blocks(start), expected);
}

TEST(StartState, AGapOfOneMebibyteBelongsToTheBlock) {
  for (const bool one_too_many : {false, true}) {
    Scene scene;
    auto& segment = scene.segment(kBase, 20 * M);
    const Address next = kBase + 3 * M + (one_too_many ? 512 : 0);
    Scene::block(segment, next, 4 * M);
    scene.free(kBase, 2 * M);
    EXPECT_EQ(blocks(scene.start())[0].size, one_too_many ? 2 * M : 3 * M);
  }
}

TEST(StartState, SmallAndExpandableBlocksHaveNoRemainder) {
  Scene scene;
  auto& small = scene.segment(kBase, 2 * M, true);
  Scene::block(small, kBase + 2048, 512);
  scene.segment(kBase + 100 * M, 20 * M, false, true);
  scene.free(kBase, 1024);
  scene.free(kBase + 100 * M, 20 * M - 512);
  const StartState start = scene.start();
  EXPECT_EQ(blocks(start)[0].size, 1024);
  EXPECT_EQ(blocks(start, 1)[0].size, 20 * M - 512);
  EXPECT_EQ(blocks(start, 1)[1].use, Use::free);
}

TEST(StartState, ALaterAllocShowsTheRemainder) {
  Scene scene;
  scene.segment(kBase, 20 * M);
  scene.alloc(kBase + 5 * M + 1024, 2 * M);  // the free block behind begins here
  scene.free(kBase + 5 * M + 1024, 2 * M);
  scene.free(kBase, 5 * M);
  EXPECT_EQ(blocks(scene.start())[0].size, 5 * M + 1024);
  EXPECT_EQ(blocks(scene.start({}, false))[0].size, 5 * M);
}

TEST(StartState, AnAllocAfterTheFreeShowsNothing) {
  Scene scene;
  scene.segment(kBase, 20 * M);
  scene.free(kBase, 5 * M);
  scene.alloc(kBase + 5 * M + 1024, 2 * M);
  scene.free(kBase + 5 * M + 1024, 2 * M);
  EXPECT_EQ(blocks(scene.start())[0].size, 5 * M);
}

TEST(StartState, OversizeBlocksAreWholeSegments) {
  AllocatorSettings settings;
  settings.max_split_size = 100 * M;
  Scene scene;
  scene.segment(kBase, 116 * M);
  scene.free(kBase, 105 * M);
  EXPECT_EQ(blocks(scene.start(settings))[0].size, 116 * M);
  EXPECT_EQ(blocks(scene.start())[0].size, 105 * M);
}

TEST(StartState, SegmentsComeAndGo) {
  Scene scene;
  scene.builder.event(Action::segment_free, kBase + 100 * M, 2 * M);
  scene.builder.event(Action::segment_free, kBase + 200 * M, 20 * M);
  scene.builder.event(Action::segment_alloc, kBase, 12 * M);
  scene.alloc(kBase, 12 * M);
  auto& segment = scene.segment(kBase, 12 * M);
  Scene::block(segment, kBase, 12 * M);
  const StartState start = scene.start();
  EXPECT_TRUE(start.contradictions.empty());
  ASSERT_EQ(start.segments.size(), 2u);
  EXPECT_TRUE(start.segments[0].small_pool);
  EXPECT_FALSE(start.segments[1].small_pool);
  EXPECT_EQ(blocks(start, 1), (std::vector<BlockState>{{kBase + 200 * M, 20 * M, 0, Use::free}}));
}

TEST(StartState, PendingFrees) {
  Scene scene;
  auto& segment = scene.segment(kBase, 20 * M);
  Scene::block(segment, kBase + 4 * M, 2 * M, State::pending);
  scene.builder.event(Action::free_completed, kBase, 2 * M);
  scene.builder.event(Action::free_requested, kBase + 4 * M, 2 * M);
  const StartState start = scene.start();
  EXPECT_TRUE(start.contradictions.empty());
  EXPECT_EQ(blocks(start)[0].use, Use::pending);  // requested before the window
  EXPECT_EQ(blocks(start)[2].use, Use::in_use);
}

TEST(StartState, StacksOfWhatLivesToTheEnd) {
  Scene scene;
  auto& segment = scene.segment(kBase, 20 * M);
  segment.blocks.push_back({kBase, 4 * M, 4 * M, 7, State::allocated});
  scene.free(kBase + 8 * M, 4 * M);
  const StartState start = scene.start();
  EXPECT_EQ(start.stacks, (std::vector<std::pair<Address, StackId>>{{kBase, 7}}));
}

TEST(StartState, ExpandableSegmentsAreReservedUpToTheNext) {
  Scene scene;
  scene.segment(kBase, 40 * M, false, true);
  scene.segment(kBase + GiB(9), 2 * M, true, true);
  const StartState start = scene.start();
  ASSERT_EQ(start.segments.size(), 2u);
  EXPECT_EQ(start.segments[0].size, GiB(9) / (20 * M) * (20 * M));
  ASSERT_EQ(blocks(start).size(), 2u);
  EXPECT_EQ(blocks(start)[1].use, Use::unmapped);
  EXPECT_GE(start.segments[1].size, GiB(100));
}

TEST(StartState, PagesOfOneReservationAreJoined) {
  AllocatorSettings settings;
  settings.expandable_segments = true;
  Scene scene;
  // Below the range at the start, and mapped in the window; above it, and unmapped in the window.
  scene.builder.event(Action::segment_unmap, kBase + 120 * M, 20 * M);
  scene.builder.event(Action::segment_map, kBase, 20 * M);
  scene.alloc(kBase, 20 * M);
  auto& first = scene.segment(kBase, 20 * M, false, true);
  Scene::block(first, kBase, 20 * M);
  auto& second = scene.segment(kBase + 60 * M, 20 * M, false, true);
  Scene::block(second, kBase + 60 * M, 20 * M);
  const StartState start = scene.start(settings);
  EXPECT_TRUE(start.contradictions.empty());
  ASSERT_EQ(start.segments.size(), 1u);
  const auto pieces = blocks(start);
  ASSERT_EQ(pieces.size(), 5u);
  EXPECT_EQ(pieces[0], (BlockState{kBase, 60 * M, 0, Use::unmapped}));
  EXPECT_EQ(pieces[1], (BlockState{kBase + 60 * M, 20 * M, 20 * M, Use::in_use}));
  EXPECT_EQ(pieces[2], (BlockState{kBase + 80 * M, 40 * M, 0, Use::unmapped}));
  EXPECT_EQ(pieces[3], (BlockState{kBase + 120 * M, 20 * M, 0, Use::free}));
  EXPECT_EQ(pieces[4].use, Use::unmapped);
}

TEST(StartState, PrivatePoolsAreNumberedByTheirIds) {
  Scene scene;
  scene.segment(kBase, 20 * M).pool = {0, 9};
  scene.segment(kBase + 32 * M, 20 * M).pool = {0, 4};
  scene.segment(kBase + 64 * M, 20 * M);
  const StartState start = scene.start();
  ASSERT_EQ(start.segments.size(), 3u);
  EXPECT_EQ(start.segments[0].private_pool, 2u);
  EXPECT_EQ(start.segments[1].private_pool, 1u);
  EXPECT_EQ(start.segments[2].private_pool, 0u);
}

TEST(StartState, WithoutSegmentsOnlyTheLossIsSaid) {
  Scene scene;
  scene.free(kBase, 2 * M);
  scene.alloc(kBase, 2 * M);
  const StartState start = scene.start();
  EXPECT_FALSE(start.empty);
  EXPECT_TRUE(start.segments.empty());
  ASSERT_EQ(start.contradictions.size(), 1u);
  EXPECT_NE(start.contradictions[0].find("no segments"), std::string::npos);
}

TEST(StartState, ContradictionsAreSaid) {
  struct Case {
    const char* says;
    std::function<void(Scene&)> make;
  };
  const Case cases[] = {
      {"never freed", [](Scene& s) { s.alloc(kBase + 2 * M, 2 * M); }},
      {"which later are",
       [](Scene& s) {
         s.device().segments[0].blocks[0].requested = 4 * M - 5;
         s.alloc(kBase, 3 * M);
       }},
      {"lives later without an alloc", [](Scene& s) { s.free(kBase, 4 * M); }},
      {"which lives on", [](Scene& s) { s.builder.event(Action::free_requested, kBase, 4 * M); }},
      {"never completes", [](Scene& s) { s.builder.event(Action::free_requested, kBase + 8 * M, 4 * M); }},
      {"which is not there later", [](Scene& s) { s.builder.event(Action::segment_alloc, kBase + GiB(1), 20 * M); }},
      {"where later another one is", [](Scene& s) { s.builder.event(Action::segment_free, kBase + 2 * M, 20 * M); }},
      {"which are not there later", [](Scene& s) { s.builder.event(Action::segment_map, kBase + GiB(7), 20 * M); }},
      {"where later something else is", [](Scene& s) { s.builder.event(Action::segment_unmap, kBase, 20 * M); }},
      {"in no known segment", [](Scene& s) { s.free(kBase + GiB(3), 4 * M); }},
      {"do not fit", [](Scene& s) { s.free(kBase + 19 * M, 4 * M); }},
      {"no allocator gives such a piece", [](Scene& s) { s.alloc(kBase + 5, 100); }},
      {"no allocator gives such a piece", [](Scene& s) { s.alloc(kBase + 512, -1); }},
      {"overlaps another one", [](Scene& s) { s.segment(kBase + 2 * M, 20 * M); }},
      {"overlaps another one", [](Scene& s) { s.segment(~Address{511}, 20 * M); }},
      {"does not lie in its segment", [](Scene& s) { Scene::block(s.device().segments[0], kBase + 16 * M, 8 * M); }},
      {"is there twice", [](Scene& s) { Scene::block(s.device().segments[0], kBase, 512); }},
      {"not whole pages", [](Scene& s) { s.segment(kBase + GiB(1), 3 * M, false, true); }},
  };
  for (const Case& c : cases) {
    Scene scene;
    auto& segment = scene.segment(kBase, 20 * M);
    Scene::block(segment, kBase, 4 * M);
    c.make(scene);
    const StartState start = scene.start();
    ASSERT_FALSE(start.contradictions.empty()) << c.says;
    EXPECT_NE(start.contradictions[0].find(c.says), std::string::npos) << start.contradictions[0];
    // And the replay goes on with what is left.
    const RecordingReplay replay = replay_as_recorded(scene.builder.recording(), scene.device(), start);
    EXPECT_EQ(replay.points.size(), scene.device().events.size());
  }
}

TEST(StartState, ManyContradictionsAreCounted) {
  Scene scene;
  scene.segment(kBase, 20 * M);
  for (int i = 0; i < 1000; ++i) scene.alloc(kBase + GiB(1) + static_cast<Address>(i) * 512, 512);
  const StartState start = scene.start();
  ASSERT_EQ(start.contradictions.size(), 21u);
  EXPECT_NE(start.contradictions.back().find("980 more"), std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
