#include "validate/replay/cuda/storage_queue.h"

#include <utility>

namespace memwall {

StorageQueue::StorageQueue(int device) : thread_([this, device] { work(device); }) {}

StorageQueue::~StorageQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  submitted_changed_.notify_all();
  thread_.join();
}

void StorageQueue::submit(std::function<void()> item) {
  {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
    ++submitted_;
  }
  submitted_changed_.notify_one();
}

std::uint64_t StorageQueue::submitted() const {
  const std::lock_guard lock(mutex_);
  return submitted_;
}

void StorageQueue::wait_for(std::uint64_t number) {
  std::unique_lock lock(mutex_);
  done_changed_.wait(lock, [&] { return done_ >= number; });
  if (failure_) std::rethrow_exception(failure_);
}

void StorageQueue::hold(cudaStream_t stream, std::uint64_t number) const {
  {
    const std::lock_guard lock(mutex_);
    if (done_ >= number) return;
  }
  counter_.hold(stream, static_cast<std::uint32_t>(number));
}

void StorageQueue::work(int device) {
  std::unique_lock lock(mutex_);
  try {
    check(cudaSetDevice(device), "cudaSetDevice");
  } catch (...) {
    failure_ = std::current_exception();
  }
  for (;;) {
    submitted_changed_.wait(lock, [this] { return ending_ || !items_.empty(); });
    if (items_.empty()) return;
    run_first(lock);
  }
}

// Without the lock while the item runs.
void StorageQueue::run_first(std::unique_lock<std::mutex>& lock) {
  const std::function<void()> item = std::move(items_.front());
  items_.pop_front();
  const bool skipped = failure_ != nullptr;
  lock.unlock();
  std::exception_ptr failure;
  try {
    if (!skipped) item();
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  if (failure && !failure_) failure_ = failure;
  ++done_;
  counter_.raise_to(static_cast<std::uint32_t>(done_));
  done_changed_.notify_all();
}

}  // namespace memwall
