// The events of a schedule on a real GPU. What an event number means is its latest record: a CUDA event where a
// CUDA stream recorded it, the length of a storage queue where a queue did. Each record has a CUDA event of its own, so
// that a thread that waits for one is not led on to a later record of the same number.
#pragma once

#include <deque>
#include <mutex>
#include <vector>

#include "validate/replay/cuda/cuda_handles.h"
#include "validate/replay/cuda/storage_queue.h"

namespace memwall {

// What was recorded last: a CUDA event, or a queue and how many of its items must be done; neither = never.
struct RecordedEvent {
  const CudaEvent* event = nullptr;
  StorageQueue* queue = nullptr;
  std::uint64_t number = 0;
};

// May be used from several threads, but for prepare.
class ScheduleEvents {
 public:
  // `events` numbers, none of them recorded; `records` CUDA events are made ready. REQUIRES: nothing runs.
  void prepare(std::size_t events, std::size_t records);

  void record(std::uint32_t event, cudaStream_t stream);
  void record(std::uint32_t event, StorageQueue& queue);
  // Throws std::runtime_error for a number that the schedule does not have.
  RecordedEvent latest(std::uint32_t event) const;

 private:
  void set(std::uint32_t event, const RecordedEvent& recorded);

  mutable std::mutex mutex_;
  std::vector<RecordedEvent> latest_;
  std::deque<CudaEvent> pool_;
  std::size_t used_ = 0;
};

}  // namespace memwall
