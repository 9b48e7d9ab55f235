// New segments lie where a recording had them.
//
// Which of two equal free blocks serves a request depends on the order of addresses, and a driver's order follows no
// rule; so the addresses of new segments are an input of an exact replay. What the recording does not have, because
// the replay asks for a segment that it did not ask for, gets an address above everything that the recording names.
#pragma once

#include <map>
#include <span>

#include "models/workload/memory/recording.h"
#include "sim/memory/pytorch_allocator.h"

namespace memwall {

class RecordedSegments final : public SegmentSource {
 public:
  explicit RecordedSegments(const DeviceRecording& device);

  // These are held from the beginning. REQUIRES: they do not overlap.
  void hold(const std::vector<SegmentState>& segments);
  // The segment_alloc and segment_map events of the request that comes now; other events are passed over. Not owned.
  void expect(std::span<const MemoryEvent> events) {
    expected_ = events;
    later_ = {};
  }
  // A request that failed may have reserved an expandable segment, which shows only when a later one maps its first
  // page: of `stream` and of this pool, among the events `later` (not owned). Until the next expect.
  void expect_reservation(std::span<const MemoryEvent> later, std::uint16_t stream, bool small) {
    later_ = later;
    later_stream_ = stream;
    later_small_ = small;
  }

  std::optional<Address> obtain(Bytes bytes) override;
  void give_back(Address address, Bytes) override { held_.erase(address); }
  std::optional<Address> reserve(Bytes bytes) override;
  void unreserve(Address address, Bytes) override { held_.erase(address); }

  std::uint64_t invented() const { return invented_; }  // addresses that the recording did not have

 private:
  bool is_free(Address address, Bytes bytes) const;
  std::optional<Address> take(Address address, Bytes bytes);
  std::optional<Address> invent(Bytes bytes);

  static constexpr std::size_t kMostLookedAhead = 5'000'000;  // events looked at in all

  std::span<const MemoryEvent> expected_, later_;
  std::uint16_t later_stream_ = 0;
  bool later_small_ = false;
  std::size_t looked_ahead_ = 0;
  std::map<Address, Address> held_;  // begin -> end
  Address next_ = 0;                 // to invent
  std::uint64_t invented_ = 0;
};

}  // namespace memwall
