// When the ops of a pass happened: CUDA events around each op of a stream, put on the host's clock; and what
// threads of the host noted themselves.
//
// A base event is recorded and waited for many times while nothing runs; where the two readings of the host's
// clock around it were nearest to each other, the event is taken to have happened halfway between them.
#pragma once

#include <chrono>
#include <deque>
#include <vector>

#include "validate/replay/backend.h"
#include "validate/replay/cuda/cuda_handles.h"
#include "validate/replay/stream_engines.h"

namespace memwall {

class OpClock {
 public:
  // Makes the events of a pass, or keeps those there are. REQUIRES: nothing runs; a device is current.
  void prepare(const Trace& schedule, const std::vector<StreamEngine>& engines);
  // Time 0 of the pass. REQUIRES: nothing runs.
  void start();
  Time now() const { return since_start(std::chrono::steady_clock::now()); }
  // Half of the time between the two readings around the base event: what device times may be off.
  Duration uncertainty() const { return uncertainty_; }

  // Around what op `id` puts on `stream`. Threads may call it at once for different ops. Throws
  // std::runtime_error if the op is none of the schedule's device ops.
  void begin(OpId id, cudaStream_t stream);
  void end(OpId id, cudaStream_t stream);
  // Of an op that a thread of the host did.
  void note(OpId id, std::chrono::steady_clock::time_point start, std::chrono::steady_clock::time_point end);

  // Device start and end of each op that was submitted. REQUIRES: everything submitted is complete.
  void read(std::vector<OpTimes>& times) const;

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  struct Slot {
    CudaEvent start, end;
  };
  struct Span {
    std::chrono::steady_clock::time_point start, end;
    bool noted = false;
  };

  Time since_start(std::chrono::steady_clock::time_point t) const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(t - start_);
  }
  Slot& slot(OpId id);

  CudaStream stream_;
  std::deque<Slot> slots_;              // of all device ops, by slot_of_
  std::vector<std::uint32_t> slot_of_;  // by op; kNone: no device op
  std::vector<char> submitted_;         // by op; bytes, because neighbours are written by different threads
  std::vector<Span> spans_;             // by op
  CudaEvent base_, trial_;
  const CudaEvent* chosen_ = &base_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Duration base_time_{}, uncertainty_{};
};

}  // namespace memwall
