// CPU work on all cores, as an optimizer on the host does it: for each number of a gradient it reads, it reads and
// writes a parameter and two moments, 28 bytes in all. Threads are started once.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "validate/replay/backend.h"

namespace memwall {

class HostWorkers {
 public:
  // `threads` of 0: one per core that this process may use.
  explicit HostWorkers(unsigned threads);
  ~HostWorkers();
  HostWorkers(const HostWorkers&) = delete;
  HostWorkers& operator=(const HostWorkers&) = delete;

  // Returns when `dram_bytes` of traffic are done. It goes over the operands in host memory once: writes those
  // with `made`, reads those with `expected` alone; and on over scratch memory, which is larger than caches.
  // Callers take turns. Throws std::bad_alloc.
  void update(Bytes dram_bytes, std::span<const Operand> operands);

 private:
  struct Job;
  void work(std::size_t worker);

  std::mutex callers_;  // held by who calls update
  std::mutex mutex_;    // guards what follows
  std::condition_variable begun_, ended_;
  std::uint64_t round_ = 0;
  std::size_t busy_ = 0;
  bool ending_ = false;
  const Job* job_ = nullptr;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;  // last: they use everything above
};

}  // namespace memwall
