// Time of work on a GPU, without the host in it: the stream is held by a kernel that waits for a flag until all
// work is queued, then two events around the work tell how long it took.
//
// Everything queued behind the kernel must fit into the launch queue (about 1,020 places): when it is full, the
// next call waits for a place that the held stream will not give. The holding kernel therefore gives up after
// kGateSeconds; such a sample is thrown away and taken once more, and after kGateAttempts the timing throws.
//
// Not for work whose call waits for the stream: copies of pageable memory, allocation, synchronisation. These
// are timed by the host's clock (host_seconds).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "validate/replay/cuda/cuda_handles.h"

namespace memwall {

inline constexpr unsigned kMostQueued = 900;  // operations behind a held stream
inline constexpr double kGateSeconds = 2;     // after which the holding kernel gives up
inline constexpr unsigned kGateAttempts = 3;

// Holds streams. One stream is held by the kernel itself; others by waiting for an event of it.
class StreamGate {
 public:
  StreamGate();
  ~StreamGate();  // opens, so that nothing stays held
  StreamGate(const StreamGate&) = delete;
  StreamGate& operator=(const StreamGate&) = delete;

  // What is submitted to `stream` from now on waits for open(). REQUIRES: not closed.
  void close(cudaStream_t stream);
  // Streams that wait for `closed()` are held as well. REQUIRES: close was called.
  cudaEvent_t closed() const { return passed_.get(); }
  void open();
  // Did the kernel give up since close? Then not everything was queued when the work began.
  // REQUIRES: the stream has been synchronised.
  bool gave_up() const;

 private:
  PinnedBuffer flags_;  // two words: open, gave up
  CudaEvent passed_{false};
};

// Times work of one stream or several. Keeps its events; not thread-safe.
class CudaTiming {
 public:
  // Seconds per operation of `operations` that `submit` queues, all in one call, in `stream`, from the start of
  // the first to the end of the last. Synchronises. Throws CudaError, or std::runtime_error if the gate gave up
  // too often. REQUIRES: 0 < operations <= kMostQueued; `submit` queues that many and waits for nothing.
  double seconds_per_operation(cudaStream_t stream, unsigned operations, const std::function<void()>& submit);

  // The general case: `submit` is given the gate, closed in `stream`, and the events that it has to record
  // where timing begins and ends. Seconds between the two. It is called again if the gate gave up.
  using Submit = std::function<void(const StreamGate& gate, const CudaEvent& begin, const CudaEvent& end)>;
  double seconds(cudaStream_t stream, const Submit& submit);
  // Seconds from the end of what seconds() timed last to `event`, negative if that came first.
  // REQUIRES: `event` is timed and was recorded by the last `submit`.
  double seconds_after_end(const CudaEvent& event) const { return event.seconds_since(end_); }

 private:
  StreamGate gate_;
  CudaEvent begin_, end_;
};

// How many operations of `seconds` each make a sample of about `aim` seconds: 1 to `most`.
unsigned operations_for(double seconds, double aim = 1e-3, unsigned most = 200);

// Seconds by the host's clock that `operation` took.
double host_seconds(const std::function<void()>& operation);

}  // namespace memwall
