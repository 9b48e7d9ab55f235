#include "validate/replay/host_stream.h"

#include <utility>

#include "validate/replay/host_computer.h"

namespace memwall {

HostStream::HostStream(std::vector<int> cores, std::function<void(std::exception_ptr)> failed)
    : failed_(std::move(failed)), thread_([this, cores = std::move(cores)] { run(cores); }) {}

HostStream::~HostStream() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  given_.notify_one();
  thread_.join();
}

void HostStream::submit(Work work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    submitted_.fetch_add(1, std::memory_order_relaxed);
  }
  given_.notify_one();
}

void HostStream::synchronize() const {
  const std::uint64_t until = submitted_.load(std::memory_order_relaxed);
  for (std::uint64_t ended = ended_.load(std::memory_order_acquire); ended < until;
       ended = ended_.load(std::memory_order_acquire))
    ended_.wait(ended, std::memory_order_acquire);
}

// Empty when there will be no more.
HostStream::Work HostStream::next() {
  std::unique_lock lock(mutex_);
  given_.wait(lock, [this] { return !queue_.empty() || closing_; });
  if (queue_.empty()) return nullptr;
  Work work = std::move(queue_.front());
  queue_.pop_front();
  return work;
}

void HostStream::run(const std::vector<int>& cores) {
  run_on_cores(cores);
  wake_punctually();
  while (Work work = next()) {
    try {
      work();
    } catch (...) {
      failed_(std::current_exception());
    }
    work = nullptr;  // what it holds is gone before anyone is told that it has ended
    ended_.fetch_add(1, std::memory_order_release);
    ended_.notify_all();
  }
}

}  // namespace memwall
