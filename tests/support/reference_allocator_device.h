// A device for comparisons of allocators: where segments lie, when it refuses, when events complete, what it was told.
//
// Everything follows from the seed and the calls made, so that two allocators that make the same calls see the same.
#pragma once

#include <map>

#include "tests/support/reference_allocator_scenario.h"

namespace memwall {

// A number that looks random, of two others.
inline std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15u + b;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class RandomSegments final : public SegmentSource {
 public:
  explicit RandomSegments(const AllocatorScenario& scenario)
      : seed_(scenario.seed),
        dense_(scenario.addresses == AllocatorScenario::Addresses::dense),
        refuses_(scenario.device_refuses) {
    for (const SegmentState& segment : scenario.start) take(segment.address, segment.size);
  }

  std::optional<Address> obtain(Bytes bytes) override {
    if (refuses_ && mixed(seed_, ++calls_) % 8 == 0) return std::nullopt;
    return place(bytes);
  }
  void give_back(Address address, Bytes) override { taken_.erase(address); }
  std::optional<Address> reserve(Bytes bytes) override { return obtain(bytes); }
  void unreserve(Address address, Bytes) override { taken_.erase(address); }

 private:
  void take(Address address, Bytes bytes) { taken_[address] = address + static_cast<Address>(bytes); }
  std::optional<Address> place(Bytes bytes) {
    // Dense: slots of 2 MiB in a small range, so that segments touch and addresses come back.
    const Address slot = dense_ ? Address{1} << 21 : Address{1} << 38;
    for (std::uint64_t slots = 256;; slots *= 2) {
      const Address address = (Address{1} << 45) + mixed(seed_ + 1, ++calls_) % slots * slot;
      const Address end = address + static_cast<Address>(bytes);
      const auto after = taken_.lower_bound(end);
      if (after != taken_.begin() && std::prev(after)->second > address) continue;
      take(address, bytes);
      return address;
    }
  }

  std::uint64_t seed_, calls_ = 0;
  bool dense_, refuses_;
  std::map<Address, Address> taken_;  // begin -> end
};

// An event completes some operations after it was recorded; later ones of a stream not always later, so that the order
// in which they are asked for matters.
class RandomEvents final : public StreamEvents {
 public:
  explicit RandomEvents(std::uint64_t seed) : seed_(seed) {}
  void tick() { ++now_; }
  std::uint64_t record(std::uint16_t stream) override {
    const std::uint64_t event = (std::uint64_t{stream} << 32) | ++recorded_[stream];
    completes_[event] = now_ + mixed(seed_, event) % 24;
    return event;
  }
  bool complete(std::uint64_t event) override { return completes_.at(event) <= now_; }
  void synchronize(std::uint64_t event) override { completes_.at(event) = now_; }

 private:
  std::uint64_t seed_, now_ = 0;
  std::map<std::uint16_t, std::uint64_t> recorded_;
  std::map<std::uint64_t, std::uint64_t> completes_;
};

struct ObservedCall {
  enum class Kind : std::uint8_t { segment_alloc, segment_free, segment_map, segment_unmap, retry_step };
  Kind kind = Kind::retry_step;
  Address address = 0;  // of a retry_step: which
  Bytes bytes = 0;
  std::uint16_t stream = 0;
  bool operator==(const ObservedCall&) const = default;
};

class ObservedCalls final : public AllocatorObserver {
 public:
  void on_segment_alloc(Address a, Bytes b, std::uint16_t s) override {
    add(ObservedCall::Kind::segment_alloc, a, b, s);
  }
  void on_segment_free(Address a, Bytes b, std::uint16_t s) override { add(ObservedCall::Kind::segment_free, a, b, s); }
  void on_segment_map(Address a, Bytes b, std::uint16_t s) override { add(ObservedCall::Kind::segment_map, a, b, s); }
  void on_segment_unmap(Address a, Bytes b, std::uint16_t s) override {
    add(ObservedCall::Kind::segment_unmap, a, b, s);
  }
  void on_retry_step(RetryStep retry_step, Bytes bytes) override { add(ObservedCall::Kind::retry_step, static_cast<Address>(retry_step), bytes, 0); }
  std::vector<ObservedCall> calls;

 private:
  void add(ObservedCall::Kind kind, Address address, Bytes bytes, std::uint16_t stream) {
    calls.push_back({kind, address, bytes, stream});
  }
};

}  // namespace memwall
