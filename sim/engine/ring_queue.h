// A queue in one array that is used round and round: what waits in a stream comes and goes with every op, and std::deque
// would ask for memory and give it back every few dozen of them.
#pragma once

#include <cassert>
#include <cstddef>
#include <vector>

namespace memwall {

template <typename T>
class RingQueue {
 public:
  bool empty() const { return head_ == tail_; }
  std::size_t size() const { return tail_ - head_; }
  // The one that `index` others stand before. REQUIRES: index < size().
  const T& operator[](std::size_t index) const {
    assert(index < size());
    return slots_[(head_ + index) & (slots_.size() - 1)];
  }
  // REQUIRES: not empty.
  const T& front() const {
    assert(!empty());
    return slots_[head_ & (slots_.size() - 1)];
  }
  void push_back(const T& value) {
    if (size() == slots_.size()) grow();
    slots_[tail_++ & (slots_.size() - 1)] = value;
  }
  // REQUIRES: not empty.
  void pop_front() {
    assert(!empty());
    ++head_;
  }

 private:
  void grow() {
    std::vector<T> larger(slots_.empty() ? 16 : slots_.size() * 2);
    const std::size_t count = size();
    for (std::size_t i = 0; i < count; ++i) larger[i] = slots_[(head_ + i) & (slots_.size() - 1)];
    slots_.swap(larger);
    head_ = 0;
    tail_ = count;
  }

  std::vector<T> slots_;  // as many as a power of two, or none
  std::size_t head_ = 0, tail_ = 0;
};

}  // namespace memwall
