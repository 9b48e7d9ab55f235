// When kernels began and ended by the device's own clock, and what that is on the host's clock.
//
// A kernel's time is here from its first instruction to its last, read from %globaltimer (nanoseconds; advances in
// steps of 32 ns to 1 us, depending on the GPU). What lies between the last instruction of one kernel and the first
// of the next in its stream is the stream's gap: period of queued kernels = time of a kernel + gap, as the simulator
// adds them up. A profiler counts a part of the gap, start-up and clean-up of the grid, to the kernel.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "validate/bench/cuda/cuda_timing.h"
#include "validate/replay/cuda/cuda_handles.h"

namespace memwall {

struct KernelTimestamp {
  std::uint64_t start = 0, end = 0;  // of the device's clock, nanoseconds
};

// A kernel of one thread that does nothing, with arguments as kernels of frameworks have them.
void launch_empty(cudaStream_t stream);
// A kernel of one thread that spins for `cycles` of the multiprocessor's clock and notes its start and end in
// `stamp`, in memory of the device.
void launch_timestamped(KernelTimestamp* stamp, std::uint64_t cycles, cudaStream_t stream);

// Stamps on the device, read back by the host; zero until they are written.
class TimestampBuffer {
 public:
  explicit TimestampBuffer(std::size_t size);
  KernelTimestamp* at(std::size_t index) const { return memory_.as<KernelTimestamp>() + index; }
  void clear() const;
  // REQUIRES: the kernels that write them have ended.
  std::vector<KernelTimestamp> read() const;

 private:
  DeviceBuffer memory_;
  std::size_t size_;
};

// Seconds from the end of each kernel to the start of the next, on average. Throws std::runtime_error where a stamp
// is missing, or a kernel began before the one ahead of it ended. REQUIRES: at least two.
double mean_gap(const std::vector<KernelTimestamp>& stamps);

// About 5 us: kernels that spin for so long are queued well before the one ahead of them ends.
inline constexpr std::uint64_t kGapCycles = 8'000;

// mean_gap over a held stream's queue; one sample.
double stream_gap_sample(cudaStream_t stream, StreamGate& gate);
// Median of several samples.
double stream_gap(cudaStream_t stream);

// The device's clock against the host's steady_clock. Each observation exchanges flags with a kernel through mapped
// memory many times and takes the exchange with the shortest round trip: the device's stamp was taken about half way
// through it. Between two observations clocks are taken to run apart linearly.
class DeviceClock {
 public:
  // REQUIRES: nothing else runs in `stream`.
  explicit DeviceClock(cudaStream_t stream) : stream_(stream), words_(4 * sizeof(std::uint64_t)) {}
  // Synchronises the stream. Throws CudaError, or std::runtime_error if the device does not answer.
  void observe();
  // The host's clock, nanoseconds, when the device's showed `stamp`. REQUIRES: observed twice; the stamp was taken
  // between (or near) the last two observations.
  std::int64_t host_nanoseconds(std::uint64_t stamp) const;
  // Half the round trip of the worse of the last two observations, in seconds: no time is further off than that.
  double uncertainty() const;
  static std::int64_t host_now();  // nanoseconds of steady_clock

 private:
  struct Point {
    std::int64_t host = 0, device = 0, round_trip = 0;  // nanoseconds; as doubles they would lose the last ones
  };
  cudaStream_t stream_;
  PinnedBuffer words_;  // question, answer, stamp, device gave up
  Point earlier_, later_;
};

}  // namespace memwall
