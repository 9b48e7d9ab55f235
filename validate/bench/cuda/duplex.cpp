// One direction between host and device while the other is busy: what full duplex is worth on this machine.
#include <algorithm>

#include "validate/bench/cuda/contention.h"
#include "validate/bench/cuda/cuda_buffers.h"
#include "validate/bench/cuda/cuda_device.h"

namespace memwall {
namespace {

// Small copies in the other direction would leave gaps, in which it is not busy.
constexpr std::size_t kSmallestBusyCopy = std::size_t{16} << 20;
constexpr unsigned kMostTimed = 50;

// A direction's own two buffers, so that the two directions touch nothing in common.
struct DirectionBuffers {
  explicit DirectionBuffers(std::size_t bytes) : device(bytes), host(bytes) {}
  DeviceBuffer device;
  PinnedBuffer host;
};

Contender copies(const DirectionBuffers& buffers, bool to_device, std::size_t bytes) {
  Contender contender;
  contender.submit = [&buffers, to_device, bytes](cudaStream_t stream) {
    void* const to = to_device ? buffers.device.data() : buffers.host.data();
    const void* const from = to_device ? buffers.host.data() : buffers.device.data();
    const cudaMemcpyKind kind = to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    check(cudaMemcpyAsync(to, from, bytes, kind, stream), "cudaMemcpyAsync");
  };
  return contender;
}

CheckedRange source(const DirectionBuffers& buffers, bool to_device, std::size_t bytes) {
  return {to_device ? buffers.host.data() : buffers.device.data(), bytes, !to_device};
}
CheckedRange destination(const DirectionBuffers& buffers, bool to_device, std::size_t bytes) {
  return {to_device ? buffers.device.data() : buffers.host.data(), bytes, to_device};
}

void measure_direction(BenchmarkRun& run, Contention& contention, const DirectionBuffers& timed_buffers,
                       const DirectionBuffers& busy_buffers, bool to_device, std::size_t bytes) {
  Measurement m =
      run.row({{"bytes", std::to_string(bytes)}, {"direction", to_device ? "host_to_device" : "device_to_host"}});
  m.bytes = static_cast<double>(bytes);
  const std::uint64_t tag = run.settings().seed;
  const std::size_t busy_bytes = std::min(std::max(bytes, kSmallestBusyCopy), busy_buffers.device.bytes());
  destination(timed_buffers, to_device, bytes).poison();
  destination(busy_buffers, !to_device, busy_bytes).poison();
  Contender timed = copies(timed_buffers, to_device, bytes);
  Contender busy = copies(busy_buffers, !to_device, busy_bytes);
  contention.time_alone(timed);
  contention.time_alone(busy);
  const unsigned operations = operations_for(timed.seconds, 1e-3, kMostTimed);
  run.sample(m, [&] { return contention.seconds_per_operation(timed, operations, busy); });
  destination(timed_buffers, to_device, bytes).verify(tag, m);
  destination(busy_buffers, !to_device, busy_bytes).verify(tag + 1, m);
  run.report(m);
}

void copy_both_pinned(BenchmarkRun& run) {
  require_device();
  const std::size_t largest = largest_device_buffer(run, 2, std::size_t{1} << 30);
  const DirectionBuffers timed(largest), busy(largest);
  Contention contention;
  for (const bool to_device : {true, false}) {
    source(timed, to_device, largest).fill(run.settings().seed);
    source(busy, !to_device, largest).fill(run.settings().seed + 1);
    for (const std::size_t bytes : copy_sizes(largest)) {
      if (run.out_of_time()) return;
      measure_direction(run, contention, timed, busy, to_device, bytes);
    }
  }
}

const RegisterBenchmark registered_copy_both_pinned{
    {"copy_both_pinned", "copies in one direction while the other direction is busy throughout", BenchmarkPlace::cuda,
     12, copy_both_pinned}};

}  // namespace
}  // namespace memwall
