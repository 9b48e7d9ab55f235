// Which host thread goes next: the one whose next call begins first, of several the one of the lowest number. A tournament
// in an array: setting a thread's time costs the logarithm of the number of threads, asking costs nothing.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/units.h"

namespace memwall {

class ThreadClock {
 public:
  // All threads are blocked (kNever) at first.
  explicit ThreadClock(std::size_t threads)
      : leaves_(std::bit_ceil(threads == 0 ? std::size_t{1} : threads)), time_(leaves_, kNever), winner_(leaves_) {
    for (std::size_t node = leaves_ - 1; node > 0; --node) winner_[node] = child_winner(2 * node);
  }

  Time time(std::size_t thread) const { return time_[thread]; }
  // kNever: the thread is blocked.
  void set(std::size_t thread, Time time) {
    time_[thread] = time;
    for (std::size_t node = (thread + leaves_) / 2; node > 0; node /= 2) {
      const std::uint32_t left = child_winner(2 * node), right = child_winner(2 * node + 1);
      winner_[node] = time_[right] < time_[left] ? right : left;
    }
  }
  std::size_t next() const { return leaves_ == 1 ? 0 : winner_[1]; }
  // Of next(); kNever where all are blocked.
  Time next_time() const { return time_[next()]; }

 private:
  std::uint32_t child_winner(std::size_t node) const {
    return node >= leaves_ ? static_cast<std::uint32_t>(node - leaves_) : winner_[node];
  }

  std::size_t leaves_;                 // a power of two, at least the number of threads
  std::vector<Time> time_;             // by thread
  std::vector<std::uint32_t> winner_;  // by inner node; node 1 is the root, nodes 2n and 2n + 1 stand below n
};

}  // namespace memwall
