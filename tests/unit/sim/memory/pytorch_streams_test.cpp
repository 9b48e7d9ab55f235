// Are blocks that several streams use reused only when the last of them is through?
#include <gtest/gtest.h>

#include <map>

#include "tests/support/allocator_view.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Use = BlockState::Use;

// Streams that pass their marks when the test says so.
class HandMovedStreams final : public StreamEvents {
 public:
  std::uint64_t record(std::uint16_t stream) override {
    ++recorded_;
    events_[++last_] = stream;
    return last_;
  }
  bool complete(std::uint64_t event) override {
    ++asked_;
    return passed_[events_[event]] >= event;
  }
  void synchronize(std::uint64_t event) override { passed_[events_[event]] = event; }
  void finish(std::uint16_t stream) { passed_[stream] = last_; }
  int recorded() const { return recorded_; }
  int asked() const { return asked_; }

 private:
  std::map<std::uint64_t, std::uint16_t> events_;
  std::map<std::uint16_t, std::uint64_t> passed_;
  std::uint64_t last_ = 0;
  int recorded_ = 0, asked_ = 0;
};

Use use_of(const PytorchAllocator& a, Address address) {
  for (const SegmentState& segment : a.segments())
    for (const BlockState& block : segment.blocks)
      if (block.address == address) return block.use;
  ADD_FAILURE() << "no block there";
  return Use::free;
}

TEST(PytorchStreams, ReusedOnceTheOtherStreamIsThrough) {
  HandMovedStreams streams;
  PytorchAllocator a(kUnlimited, nullptr, {}, &streams);
  const Address block = get(a, 12 * M);
  a.record_stream(block, 1);
  a.free(block);
  EXPECT_EQ(a.usage().allocated, 0);
  EXPECT_EQ(a.active_bytes(), 12 * M);
  EXPECT_EQ(use_of(a, block), Use::pending);
  EXPECT_NE(get(a, 12 * M), block);
  streams.finish(1);
  EXPECT_EQ(use_of(a, block), Use::pending);  // seen by the next request only
  EXPECT_EQ(get(a, 12 * M), block);
  EXPECT_EQ(streams.recorded(), 1);
}

TEST(PytorchStreams, TheOwnStreamNeedsNoEvent) {
  HandMovedStreams streams;
  PytorchAllocator a(kUnlimited, nullptr, {}, &streams);
  const Address block = get(a, 12 * M, 2);
  a.record_stream(block, 2);
  a.free(block);
  EXPECT_EQ(get(a, 12 * M, 2), block);
  EXPECT_EQ(streams.recorded(), 0);
}

// Every stream has its queue: the front of one holds up its own followers, and nobody else.
TEST(PytorchStreams, ASlowStreamHoldsUpItsOwnQueueOnly) {
  HandMovedStreams streams;
  PytorchAllocator a(kUnlimited, nullptr, {}, &streams);
  const Address both = get(a, 12 * M), fast = get(a, 14 * M), slow = get(a, 16 * M);
  a.record_stream(both, 1);
  a.record_stream(both, 2);
  a.record_stream(both, 1);  // once more: no second event
  a.record_stream(fast, 1);
  a.record_stream(slow, 2);
  for (const Address block : {both, fast, slow}) a.free(block);
  EXPECT_EQ(streams.recorded(), 4);
  streams.finish(1);
  EXPECT_EQ(get(a, 14 * M), fast);
  EXPECT_EQ(use_of(a, both), Use::pending);
  streams.finish(2);
  EXPECT_EQ(get(a, 12 * M), both);
  EXPECT_EQ(get(a, 16 * M), slow);
}

// A pending block is no neighbour to join with.
TEST(PytorchStreams, PendingBlocksDoNotJoin) {
  HandMovedStreams streams;
  PytorchAllocator a(kUnlimited, nullptr, {}, &streams);
  const Address low = get(a, 1024), middle = get(a, 1024), high = get(a, 1024);
  a.record_stream(middle, 1);
  a.free(middle);
  a.free(low);
  a.free(high);
  EXPECT_EQ(free_sizes(a), (std::vector<Bytes>{1024, 2 * M - 2048}));
  streams.finish(1);
  const Address again = get(a, 12 * M);
  EXPECT_EQ(free_sizes(a), std::vector<Bytes>{2 * M});
  a.free(again);
}

TEST(PytorchStreams, ReleasingTheCacheWaitsForEverything) {
  HandMovedStreams streams;
  PytorchAllocator a(100 * M, nullptr, {}, &streams);
  const Address block = get(a, 60 * M);
  a.record_stream(block, 1);
  a.free(block);
  get(a, 70 * M);
  EXPECT_EQ(a.usage().reserved, 70 * M);
  EXPECT_EQ(a.statistics().num_alloc_retries, 1);
  EXPECT_EQ(a.statistics().num_sync_all_streams, 1);
  EXPECT_EQ(a.active_bytes(), 70 * M);
}

TEST(PytorchStreams, WithoutEventsOnlyASynchronizationFrees) {
  PytorchAllocator a(kUnlimited);
  const Address block = get(a, 12 * M);
  a.record_stream(block, 1);
  a.free(block);
  get(a, 12 * M);
  EXPECT_EQ(use_of(a, block), Use::pending);
  a.release_cached();
  EXPECT_EQ(a.usage().reserved, 12 * M);
  EXPECT_EQ(a.active_bytes(), 12 * M);
}

// A capture asks for no event; what other streams did with a block before it counts afterwards.
TEST(PytorchStreams, FreesDuringACaptureAreRecordedAfterIt) {
  HandMovedStreams streams;
  PytorchAllocator a(kUnlimited, nullptr, {}, &streams);
  const Address before = get(a, 12 * M), within = get(a, 14 * M), waiting = get(a, 16 * M);
  a.record_stream(before, 1);
  a.record_stream(waiting, 2);
  a.free(waiting);
  a.begin_capture();
  a.record_stream(within, 1);
  a.free(before);
  a.free(within);
  streams.finish(2);
  EXPECT_NE(get(a, 16 * M), waiting);
  EXPECT_EQ(streams.recorded(), 1);
  EXPECT_EQ(streams.asked(), 0);
  a.release_cached();
  EXPECT_EQ(a.usage().reserved, 58 * M);
  a.end_capture();
  EXPECT_EQ(get(a, 14 * M), within);  // used by the capture alone
  EXPECT_EQ(streams.recorded(), 2);
  EXPECT_EQ(use_of(a, before), Use::pending);
  EXPECT_EQ(get(a, 16 * M), waiting);
}

// The next capture into the same pool, begun at once, uses them again.
TEST(PytorchStreams, TheEndOfACaptureFreesWhatOnlyItUsed) {
  HandMovedStreams streams;
  PytorchAllocator a(kUnlimited, nullptr, {}, &streams);
  a.begin_capture();
  const Address block = get(a, 12 * M);
  a.record_stream(block, 1);
  a.free(block);
  a.end_capture();
  EXPECT_EQ(a.active_bytes(), 0);
  EXPECT_EQ(streams.recorded(), 0);
  a.begin_capture();
  EXPECT_EQ(get(a, 12 * M), block);
  a.end_capture();
}

// During a capture the last step is not taken.
TEST(PytorchStreams, ACaptureDoesNotReleaseTheCache) {
  PytorchAllocator a(100 * M);
  a.free(get(a, 60 * M));
  a.begin_capture();
  EXPECT_FALSE(a.allocate(70 * M, 0).has_value());
  EXPECT_EQ(a.statistics().num_alloc_retries, 0);
  EXPECT_EQ(a.statistics().num_ooms, 1);
  a.end_capture();
  get(a, 70 * M);
}

TEST(PytorchStreams, TheTwoHalvesOfAFree) {
  PytorchAllocator a(kUnlimited);
  const Address block = get(a, 12 * M - 100);
  a.request_free(block);
  EXPECT_EQ(a.usage().allocated, 0);
  EXPECT_EQ(a.usage().requested, 0);
  EXPECT_EQ(a.statistics().requested_bytes[0].current, 12 * M - 100);
  EXPECT_EQ(a.active_bytes(), 12 * M);
  EXPECT_NE(get(a, 12 * M), block);
  a.complete_free(block);
  EXPECT_EQ(a.active_bytes(), 12 * M);
  EXPECT_EQ(get(a, 12 * M), block);
}

// A retry has completed the free already; the recording's own completion comes later and finds nothing to do.
TEST(PytorchStreams, ASynchronizationCompletesRequestedFrees) {
  PytorchAllocator a(100 * M);
  std::vector<Address> small;
  for (int i = 0; i < 3; ++i) small.push_back(get(a, 1024));
  const Address large = get(a, 60 * M);
  a.request_free(large);
  a.request_free(small[1]);
  a.request_free(small[0]);
  a.complete_free(small[1]);
  get(a, 90 * M);
  EXPECT_EQ(a.usage().reserved, 92 * M);
  EXPECT_EQ(free_sizes(a), (std::vector<Bytes>{2048, 2 * M - 3072}));
  a.complete_free(small[0]);
  a.complete_free(large);
  EXPECT_EQ(a.active_bytes(), 90 * M + 1024);
}

TEST(PytorchStreams, PendingBlocksAreRestored) {
  PytorchAllocator a(kUnlimited);
  const Address block = get(a, 1024);
  get(a, 1024);
  a.request_free(block);
  PytorchAllocator b(kUnlimited);
  b.restore(a.segments());
  EXPECT_EQ(b.segments(), a.segments());
  EXPECT_EQ(b.usage().allocated, 1024);
  EXPECT_EQ(b.active_bytes(), 2048);
  EXPECT_EQ(b.statistics().requested_bytes[1].current, 2048);
  b.complete_free(block);
  EXPECT_EQ(b.active_bytes(), 1024);
  EXPECT_EQ(get(b, 1024), block);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
