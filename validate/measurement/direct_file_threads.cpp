// Requests by threads: `depth` of them, each with one pread or pwrite at a time.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "validate/measurement/direct_file_queue.h"

namespace memwall {
namespace {

class ThreadQueue final : public FileRequestQueue {
 public:
  ThreadQueue(std::size_t block, unsigned depth) : block_(block) {
    try {
      for (unsigned i = 0; i < depth; ++i) threads_.emplace_back([this] { serve(); });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~ThreadQueue() override { stop(); }
  ThreadQueue(const ThreadQueue&) = delete;
  ThreadQueue& operator=(const ThreadQueue&) = delete;

  void run(const FileTransfer& transfer) override {
    std::unique_lock lock(mutex_);
    transfer_ = transfer;
    next_ = 0;
    failed_ = false;
    busy_ = threads_.size();
    ++round_;
    begin_.notify_all();
    done_.wait(lock, [this] { return busy_ == 0; });
    if (failed_) throw_file_error(transfer, transfer.offset + failed_at_, error_);
  }

 private:
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    begin_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void serve() {
    std::uint64_t seen = 0;
    for (std::unique_lock lock(mutex_);;) {
      begin_.wait(lock, [&] { return stopping_ || round_ != seen; });
      if (stopping_) return;
      seen = round_;
      lock.unlock();
      take_blocks();
      lock.lock();
      if (--busy_ == 0) done_.notify_one();
    }
  }

  void take_blocks() {
    while (!failed_) {
      const std::size_t from = next_.fetch_add(block_);
      if (from >= transfer_.bytes) return;
      block(from, std::min(block_, transfer_.bytes - from));
    }
  }

  void block(std::size_t from, std::size_t bytes) {
    while (bytes > 0) {
      const off_t offset = static_cast<off_t>(transfer_.offset + from);
      const ssize_t done = transfer_.write ? ::pwrite(transfer_.file, transfer_.data + from, bytes, offset)
                                           : ::pread(transfer_.file, transfer_.data + from, bytes, offset);
      if (done < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      const std::size_t count = done > 0 ? static_cast<std::size_t>(done) : 0;
      const std::size_t kept = count >= bytes ? bytes : count / transfer_.alignment * transfer_.alignment;
      if (kept == 0) return note_failure(from, done < 0 ? errno : 0);
      from += kept;
      bytes -= kept;
    }
  }

  void note_failure(std::size_t at, int error) {
    const std::lock_guard lock(mutex_);
    if (failed_) return;
    failed_at_ = at;
    error_ = error;
    failed_ = true;
  }

  std::size_t block_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable begin_, done_;
  std::uint64_t round_ = 0;  // counts transfers
  std::size_t busy_ = 0;     // threads that have not finished this round
  bool stopping_ = false;
  FileTransfer transfer_;  // written between rounds only
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::size_t failed_at_ = 0;
  int error_ = 0;
};

}  // namespace

std::unique_ptr<FileRequestQueue> make_thread_queue(std::size_t block, unsigned depth) {
  return std::make_unique<ThreadQueue>(block, depth);
}

}  // namespace memwall
