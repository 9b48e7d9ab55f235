// A stream of storage ops: a thread of the host that does what it is given in order, as a CUDA stream does for
// kernels. CUDA streams wait for it by its counter; it waits for them by synchronising with their events.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "validate/replay/cuda/stream_counter.h"

namespace memwall {

class StorageQueue {
 public:
  // `device` becomes current in its thread.
  explicit StorageQueue(int device);
  ~StorageQueue();  // ends when everything submitted is done
  StorageQueue(const StorageQueue&) = delete;
  StorageQueue& operator=(const StorageQueue&) = delete;

  // Returns at once. After an item that threw, later ones are counted as done and not run, so that nobody waits
  // for ever. From any thread.
  void submit(std::function<void()> item);
  // Number of items submitted so far: the queue's present end.
  std::uint64_t submitted() const;
  // Blocks until `number` items are done; throws what an item threw.
  void wait_for(std::uint64_t number);
  // Later work of `stream` waits until `number` items are done. Returns at once.
  void hold(cudaStream_t stream, std::uint64_t number) const;
  bool by_memory_operation() const { return counter_.by_memory_operation(); }

 private:
  void work(int device);
  void run_first(std::unique_lock<std::mutex>& lock);

  mutable std::mutex mutex_;
  std::condition_variable submitted_changed_, done_changed_;
  std::deque<std::function<void()>> items_;
  std::uint64_t submitted_ = 0, done_ = 0;
  bool ending_ = false;
  std::exception_ptr failure_;
  StreamCounter counter_;  // the low 32 bits of done_
  std::thread thread_;     // last: it uses everything above
};

}  // namespace memwall
