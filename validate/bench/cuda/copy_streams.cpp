// Copies of one direction from several streams: do they run beside each other, or one after another?
#include <memory>
#include <vector>

#include "validate/bench/cuda/cuda_buffers.h"
#include "validate/bench/cuda/cuda_device.h"
#include "validate/bench/cuda/cuda_timing.h"

namespace memwall {
namespace {

constexpr unsigned kMostStreams = 4;

struct StreamsOfCopies {
  const DeviceBuffer& device;
  const PinnedBuffer& host;
  bool to_device = true;

  void copy(std::size_t offset, std::size_t bytes, cudaStream_t stream) const {
    auto* const on_device = device.as<std::byte>() + offset;
    auto* const on_host = host.as<std::byte>() + offset;
    if (to_device)
      check(cudaMemcpyAsync(on_device, on_host, bytes, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
    else
      check(cudaMemcpyAsync(on_host, on_device, bytes, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
  }
  CheckedRange destination(std::size_t bytes) const {
    return {to_device ? device.data() : host.data(), bytes, to_device};
  }
  CheckedRange source(std::size_t bytes) const { return {to_device ? host.data() : device.data(), bytes, !to_device}; }
};

// The streams of one case: the first is held and timed, the others begin and end with it.
struct StreamSet {
  explicit StreamSet(unsigned count) : streams(count), ends(count) {
    for (auto& stream : streams) stream = std::make_unique<CudaStream>();
    for (auto& end : ends) end = std::make_unique<CudaEvent>(false);
  }
  std::vector<std::unique_ptr<CudaStream>> streams;
  std::vector<std::unique_ptr<CudaEvent>> ends;
};

// Seconds for `rounds` copies of each stream's part of `bytes`.
double seconds_of_rounds(CudaTiming& timing, const StreamSet& set, const StreamsOfCopies& copies, std::size_t bytes,
                         unsigned rounds) {
  const std::size_t part = bytes / set.streams.size();
  const CudaStream& first = *set.streams.front();
  return timing.seconds(first.get(), [&](const StreamGate&, const CudaEvent& begin, const CudaEvent& end) {
    begin.record(first.get());
    for (std::size_t i = 1; i < set.streams.size(); ++i) set.streams[i]->wait(begin.get());
    for (unsigned round = 0; round < rounds; ++round)
      for (std::size_t i = 0; i < set.streams.size(); ++i) copies.copy(i * part, part, set.streams[i]->get());
    for (std::size_t i = 1; i < set.streams.size(); ++i) {
      set.ends[i]->record(set.streams[i]->get());
      first.wait(set.ends[i]->get());
    }
    end.record(first.get());
  });
}

void measure_streams(BenchmarkRun& run, CudaTiming& timing, const StreamsOfCopies& copies, std::size_t bytes,
                     unsigned streams) {
  Measurement m = run.row({{"bytes", std::to_string(bytes)}, {"streams", std::to_string(streams)}});
  m.bytes = static_cast<double>(bytes);
  const StreamSet set(streams);
  copies.destination(bytes).poison();
  const double once = seconds_of_rounds(timing, set, copies, bytes, 1);
  const unsigned rounds = operations_for(once, 2e-3, kMostQueued / kMostStreams / 2);
  run.sample(m, [&] { return seconds_of_rounds(timing, set, copies, bytes, rounds) / rounds; });
  copies.destination(bytes).verify(run.settings().seed, m);
  run.report(m);
}

void measure_streams(BenchmarkRun& run, bool to_device) {
  require_device();
  const std::size_t largest = largest_device_buffer(run, 1, std::size_t{256} << 20);
  const DeviceBuffer device(largest);
  const PinnedBuffer host(largest);
  const StreamsOfCopies copies{device, host, to_device};
  copies.source(largest).fill(run.settings().seed);
  CudaTiming timing;
  for (const std::size_t bytes : sizes_between(std::size_t{64} << 10, largest, 16))
    for (unsigned streams = 1; streams <= kMostStreams; streams *= 2) {
      if (run.out_of_time()) return;
      measure_streams(run, timing, copies, bytes, streams);
    }
}

void copy_host_hbm_streams(BenchmarkRun& run) { measure_streams(run, true); }
void copy_hbm_host_streams(BenchmarkRun& run) { measure_streams(run, false); }

const RegisterBenchmark registered_copy_host_hbm_streams{
    {"copy_host_hbm_streams", "copies to the device from 1, 2 and 4 streams: one engine or several",
     BenchmarkPlace::cuda, 40, copy_host_hbm_streams}};
const RegisterBenchmark registered_copy_hbm_host_streams{
    {"copy_hbm_host_streams", "copies to the host from 1, 2 and 4 streams: one engine or several", BenchmarkPlace::cuda,
     40, copy_hbm_host_streams}};

}  // namespace
}  // namespace memwall
