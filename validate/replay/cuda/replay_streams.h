// The streams and events of a schedule on a real GPU: CUDA streams for what the device does, queues with a thread of
// their own for storage ops, and waiting among all of them.
//
// waits        | for a CUDA stream's event | for a storage queue's event
// CUDA stream  | cudaStreamWaitEvent       | a memory operation on the queue's counter
// queue        | its thread synchronises   | its thread waits for the counter
// host thread  | cudaEventSynchronize      | likewise
#pragma once

#include <memory>
#include <vector>

#include "sim/trace/trace.h"
#include "validate/replay/cuda/cuda_handles.h"
#include "validate/replay/cuda/schedule_events.h"
#include "validate/replay/cuda/storage_queue.h"
#include "validate/replay/stream_engines.h"

namespace memwall {

// What executes one stream of the schedule: one of the first two.
struct ReplayStream {
  std::unique_ptr<CudaStream> device;
  std::unique_ptr<StorageQueue> storage;
  std::unique_ptr<DeviceBuffer> workspace;  // of products, where the stream has any
};

// May be used from several threads, but for prepare. REQUIRES, of every call: the device is current.
class ReplayStreams {
 public:
  explicit ReplayStreams(int device) : device_(device) {}
  ~ReplayStreams();  // waits for all
  ReplayStreams(const ReplayStreams&) = delete;
  ReplayStreams& operator=(const ReplayStreams&) = delete;

  // Streams and events of `schedule`, none of the events recorded. `anew`: even where the present ones would do.
  // Throws UsageError: see stream_engines. REQUIRES: nothing runs.
  void prepare(const Trace& schedule, bool anew);
  const std::vector<StreamEngine>& engines() const { return engines_; }

  // Throws std::runtime_error for a number that the schedule does not have.
  ReplayStream& at(std::uint16_t stream);
  // The CUDA stream, or the queue, on which op `id` belongs. Throw UsageError where the stream is of the other kind.
  cudaStream_t device_stream(OpId id, std::uint16_t stream);
  StorageQueue& storage_queue(OpId id, std::uint16_t stream);
  // One of the queues; null where there is none.
  const StorageQueue* any_queue() const;

  void record(std::uint32_t event, std::uint16_t stream);
  void wait(std::uint32_t event, std::uint16_t stream);
  void synchronize(std::uint16_t stream);
  void synchronize_event(std::uint32_t event);
  // All streams and queues, even where one has failed; then throws what the first one threw.
  void synchronize_all();

 private:
  int device_;
  std::vector<StreamEngine> engines_;
  ScheduleEvents events_;
  std::vector<ReplayStream> streams_;  // after the events, which their threads use
};

}  // namespace memwall
