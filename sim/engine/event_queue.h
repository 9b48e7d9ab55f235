// The heart of the engine: what happens next. A heap ordered by (time, late,
// sequence): at one instant ordinary events run in the order in which they were
// scheduled, and `late` ones after all of them, so that rates are solved once.
#pragma once

#include <cassert>
#include <cstddef>
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
    const Event event{time, (late ? kLate : 0) | sequence_++, kind, subject};
    std::size_t hole = heap_.size();
    heap_.push_back(event);
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / kChildren;
      if (!before(event, heap_[parent])) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = event;
  }

  // REQUIRES: not empty.
  Event pop() {
    const Event event = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
    now_ = event.time;
    ++popped_;
    return event;
  }

  bool empty() const { return heap_.empty(); }
  Time next_time() const { return heap_.empty() ? kNever : heap_.front().time; }
  std::uint64_t popped() const { return popped_; }

 private:
  // Four children share a cache line and a half; the heap is half as deep as one of two.
  static constexpr std::size_t kChildren = 4;

  static bool before(const Event& a, const Event& b) { return a.time != b.time ? a.time < b.time : a.order < b.order; }

  // Finds the place of `event` from the root downwards, where a hole is.
  void sink(const Event& event) {
    const std::size_t size = heap_.size();
    std::size_t hole = 0;
    for (;;) {
      const std::size_t first = hole * kChildren + 1;
      if (first >= size) break;
      const std::size_t end = first + kChildren < size ? first + kChildren : size;
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child)
        if (before(heap_[child], heap_[least])) least = child;
      if (!before(heap_[least], event)) break;
      heap_[hole] = heap_[least];
      hole = least;
    }
    heap_[hole] = event;
  }

  std::vector<Event> heap_;
  std::uint64_t sequence_ = 0;
  std::uint64_t popped_ = 0;
  Time now_{};
};

}  // namespace memwall
