// The heart of the engine: what happens next. A heap ordered by (time, late,
// sequence): at one instant ordinary events run in the order in which they were
// scheduled, and `late` ones after all of them, so that rates are solved once.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <vector>

#include "sim/units.h"

namespace memwall {

struct Event {
  Time time{};
  std::uint64_t order = 0;    // late bit, then sequence number
  std::uint32_t kind = 0;     // the owner's business
  std::uint32_t subject = 0;  // the owner's business
};

class EventQueue {
 public:
  static constexpr std::uint64_t kLate = 1ULL << 63;

  // REQUIRES: time is not before the event popped last.
  void push(Time time, std::uint32_t kind, std::uint32_t subject, bool late = false) {
    assert(time >= now_);
    heap_.push_back({time, (late ? kLate : 0) | sequence_++, kind, subject});
    std::push_heap(heap_.begin(), heap_.end(), after);
  }

  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), after);
    const Event event = heap_.back();
    heap_.pop_back();
    now_ = event.time;
    ++popped_;
    return event;
  }

  bool empty() const { return heap_.empty(); }
  Time next_time() const { return heap_.empty() ? kNever : heap_.front().time; }
  std::uint64_t popped() const { return popped_; }

 private:
  static bool after(const Event& a, const Event& b) { return a.time != b.time ? a.time > b.time : a.order > b.order; }

  std::vector<Event> heap_;
  std::uint64_t sequence_ = 0;
  std::uint64_t popped_ = 0;
  Time now_{};
};

}  // namespace memwall
