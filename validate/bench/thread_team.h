// Threads that do one thing together and say how long it took from the common start to the last one's end.
#pragma once

#include <barrier>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace memwall {

class ThreadTeam {
 public:
  // The calling thread is member 0; `size` - 1 others wait asleep. REQUIRES: size > 0.
  explicit ThreadTeam(unsigned size);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  unsigned size() const { return static_cast<unsigned>(threads_.size()) + 1; }
  // Calls work(member) on every member; seconds until the last one returned. `work` must not throw.
  double run(const std::function<void(unsigned member)>& work);

 private:
  std::barrier<> barrier_;
  const std::function<void(unsigned)>* work_ = nullptr;  // of this round; null ends the threads
  std::vector<std::thread> threads_;
};

// 1, 2, 4, ... and the number of cores that may be used, the greatest first: what calibration needs.
std::vector<unsigned> team_sizes();

// The part of `count` things that falls to a member; parts begin at multiples of `unit`.
struct TeamShare {
  std::size_t begin = 0, end = 0;
};
TeamShare share_of(std::size_t count, unsigned member, unsigned members, std::size_t unit);

}  // namespace memwall
