// Who waits for the end of an op: host threads, and streams whose next op an event holds back. Most ops end unawaited, so
// a count per bucket of op numbers is asked before the list is searched.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/trace/op.h"

namespace memwall {

struct Waiter {
  OpId op = kNoOp;
  bool is_thread = false;
  std::uint16_t index = 0;  // of the thread or the stream
};

class Waiters {
 public:
  void add(const Waiter& waiter) {
    list_.push_back(waiter);
    ++awaited_[bucket(waiter.op)];
  }

  // Does this thread wait for the op?
  bool thread_awaits(std::uint16_t thread, OpId op) const {
    if (awaited_[bucket(op)] == 0) return false;
    for (const Waiter& waiter : list_)
      if (waiter.is_thread && waiter.index == thread && waiter.op == op) return true;
    return false;
  }

  // Removes those who wait for the op and hands each to `wake`, in the order in which they came.
  // REQUIRES: wake adds and removes none.
  template <typename Wake>
  void take(OpId op, const Wake& wake) {
    if (awaited_[bucket(op)] == 0) return;
    std::size_t kept = 0;
    for (const Waiter waiter : list_) {
      if (waiter.op == op)
        wake(waiter);
      else
        list_[kept++] = waiter;
    }
    awaited_[bucket(op)] -= static_cast<std::uint32_t>(list_.size() - kept);
    list_.resize(kept);
  }

  void remove_thread(std::uint16_t thread) {
    std::erase_if(list_, [&](const Waiter& waiter) {
      const bool goes = waiter.is_thread && waiter.index == thread;
      if (goes) --awaited_[bucket(waiter.op)];
      return goes;
    });
  }

 private:
  static std::size_t bucket(OpId op) { return op % 1024; }

  std::vector<Waiter> list_;
  std::array<std::uint32_t, 1024> awaited_{};  // how many of list_, by op % 1024
};

}  // namespace memwall
