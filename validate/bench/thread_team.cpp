#include "validate/bench/thread_team.h"

#include <algorithm>
#include <chrono>

#include "validate/replay/host_computer.h"

namespace memwall {

ThreadTeam::ThreadTeam(unsigned size) : barrier_(static_cast<std::ptrdiff_t>(size)) {
  for (unsigned member = 1; member < size; ++member)
    threads_.emplace_back([this, member] {
      for (;;) {
        barrier_.arrive_and_wait();
        if (work_ == nullptr) return;
        (*work_)(member);
        barrier_.arrive_and_wait();
      }
    });
}

ThreadTeam::~ThreadTeam() {
  work_ = nullptr;
  barrier_.arrive_and_wait();
  for (std::thread& thread : threads_) thread.join();
}

double ThreadTeam::run(const std::function<void(unsigned)>& work) {
  work_ = &work;
  barrier_.arrive_and_wait();
  const auto start = std::chrono::steady_clock::now();
  work(0);
  barrier_.arrive_and_wait();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<unsigned> team_sizes() {
  const unsigned all = static_cast<unsigned>(allowed_cores().size());
  std::vector<unsigned> sizes;
  for (unsigned size = 1; size < all; size *= 2) sizes.push_back(size);
  sizes.push_back(all);
  std::reverse(sizes.begin(), sizes.end());
  return sizes;
}

TeamShare share_of(std::size_t count, unsigned member, unsigned members, std::size_t unit) {
  const auto boundary = [&](std::size_t i) { return i == members ? count : count / members * i / unit * unit; };
  return {boundary(member), boundary(member + 1)};
}

}  // namespace memwall
