// A run of the caching allocator, written down as a memory snapshot has it.
//
// Random calls on several streams, with frees that complete later, empty_cache, a capacity that is too small now and
// then, and segments at addresses in no order. What comes out is a recording whose truth is known.
#pragma once

#include <random>

#include "models/workload/memory/recording.h"
#include "sim/memory/pytorch_allocator.h"

namespace memwall {

struct RecordedRunOptions {
  AllocatorSettings settings;
  std::uint64_t seed = 1;
  int calls = 400;
  int streams = 1;
  bool late_completions = false;
  Bytes capacity = Bytes{1} << 50;
};

class RecordedRun final : private AllocatorObserver, private SegmentSource {
 public:
  explicit RecordedRun(const RecordedRunOptions& options);
  MemoryRecording recording() const;

  // The true state before event `i`; of each call's first event only, empty elsewhere.
  std::vector<std::vector<SegmentState>> states;

 private:
  using Action = MemoryEvent::Action;
  struct Held {
    Address address = 0;
    Bytes size = 0;
    std::uint16_t stream = 0;
  };

  void call();
  void allocate();
  void free_one();
  void complete(std::size_t which);
  void complete_all();
  void add(Action action, Address address, Bytes size, std::uint16_t stream);
  Bytes random_size();
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_() % limit); }

  std::optional<Address> obtain(Bytes bytes) override;
  void give_back(Address, Bytes) override {}
  std::optional<Address> reserve(Bytes bytes) override;
  void on_segment_alloc(Address address, Bytes bytes, std::uint16_t stream) override {
    add(Action::segment_alloc, address, bytes, stream);
  }
  void on_segment_free(Address address, Bytes bytes, std::uint16_t stream) override {
    complete_all();
    add(Action::segment_free, address, bytes, stream);
  }
  void on_segment_map(Address address, Bytes bytes, std::uint16_t stream) override {
    add(Action::segment_map, address, bytes, stream);
  }
  void on_segment_unmap(Address address, Bytes bytes, std::uint16_t stream) override {
    complete_all();
    add(Action::segment_unmap, address, bytes, stream);
  }
  // A synchronization that releases nothing completes all the same.
  void on_retry_step(RetryStep retry_step, Bytes) override {
    if (retry_step == RetryStep::release_cached) complete_all();
  }

  RecordedRunOptions options_;
  std::mt19937_64 random_;
  PytorchAllocator allocator_;
  std::vector<Held> live_, pending_;
  std::vector<MemoryEvent> events_;
  StackId stack_ = 0;            // of the present call
  std::vector<Address> places_;  // for segments, shuffled
  Address next_reservation_ = Address{1} << 45;
};

}  // namespace memwall
