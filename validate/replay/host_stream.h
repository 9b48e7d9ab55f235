// A stream of the host back end: a thread that does what it was given, in order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace memwall {

// One record of an event: done once all work has ended that its stream had been given before.
struct EventRecord {
  std::atomic<std::uint32_t> done{0};
  void wait() const { done.wait(0, std::memory_order_acquire); }
  void finish() {
    done.store(1, std::memory_order_release);
    done.notify_all();
  }
};

class HostStream {
 public:
  using Work = std::function<void()>;

  // The thread runs on `cores`. `failed` is called on it for whatever a piece of work throws; later work is
  // done all the same, so that nobody waits for ever.
  HostStream(std::vector<int> cores, std::function<void(std::exception_ptr)> failed);
  // Ends what it was given first.
  ~HostStream();
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;

  void submit(Work work);
  // Returns when everything submitted so far has ended.
  void synchronize() const;

 private:
  void run(const std::vector<int>& cores);
  Work next();

  std::function<void(std::exception_ptr)> failed_;
  std::mutex mutex_;
  std::condition_variable given_;
  std::deque<Work> queue_;
  bool closing_ = false;
  std::atomic<std::uint64_t> submitted_{0}, ended_{0};
  std::thread thread_;  // last: starts when the rest is there
};

}  // namespace memwall
