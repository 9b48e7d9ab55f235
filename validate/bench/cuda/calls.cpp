// What calls cost the host, and how long the device takes to notice: call_launch, call_copy, call_event,
// call_allocator, launch_latency, stream_gap, call_synchronize_return.
//
// launch_latency and call_synchronize_return compare a moment on the host with one on the device: DeviceClock
// (device_timestamps.h) relates the two clocks right before and right after each batch, and the note says how far off
// they may be. A kernel may start before the call that launched it returns: then the latency is negative.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/memory/pytorch_allocator.h"
#include "validate/bench/benchmark.h"
#include "validate/bench/cuda/cuda_buffers.h"
#include "validate/bench/cuda/cuda_device.h"
#include "validate/bench/cuda/device_timestamps.h"
#include "validate/replay/pattern.h"

namespace memwall {
namespace {

constexpr unsigned kCalls = 200;                // in a batch, well below the depth of the launch queue
constexpr unsigned kSynchronizations = 50;      // of host and device in a batch
constexpr std::uint64_t kWorkCycles = 150'000;  // about 100 us: the host is waiting long before the work ends

// Runs `batch`, which gives the seconds of several calls, once as warm-up and then until time and samples suffice.
void sample_calls(const BenchmarkRun& run, Measurement& m, const std::function<std::vector<double>()>& batch) {
  batch();
  std::vector<double> all;
  const auto start = std::chrono::steady_clock::now();
  const std::chrono::duration<double> enough(run.settings().seconds_per_case);
  do {
    const std::vector<double> some = batch();
    all.insert(all.end(), some.begin(), some.end());
  } while (all.size() < run.settings().fewest_samples || std::chrono::steady_clock::now() - start < enough);
  summarize_samples(std::move(all), m);
}

void spin_for(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

void call_launch(BenchmarkRun& run) {
  require_device();
  const CudaStream stream;
  Measurement m = run.row({});
  sample_calls(run, m, [&] {
    std::vector<double> seconds;
    for (unsigned i = 0; i < kCalls; ++i) seconds.push_back(host_seconds([&] { launch_empty(stream.get()); }));
    stream.synchronize();
    return seconds;
  });
  run.report(m);
}

void call_copy(BenchmarkRun& run) {
  require_device();
  constexpr std::size_t kBytes = 64 << 10;
  const CudaStream stream;
  const PinnedBuffer host(kBytes);
  const DeviceBuffer device(kBytes);
  const CheckedRange from{host.data(), kBytes, false}, to{device.data(), kBytes, true};
  from.fill(run.settings().seed);
  to.poison();
  Measurement m = run.row({});
  sample_calls(run, m, [&] {
    std::vector<double> seconds;
    for (unsigned i = 0; i < kCalls; ++i)
      seconds.push_back(host_seconds([&] {
        check(cudaMemcpyAsync(device.data(), host.data(), kBytes, cudaMemcpyHostToDevice, stream.get()),
              "cudaMemcpyAsync");
      }));
    stream.synchronize();
    return seconds;
  });
  to.verify(run.settings().seed, m);
  run.report(m);
}

// Half of a record and a wait in another stream; without timing, as frameworks make the events that order streams.
void call_event(BenchmarkRun& run) {
  require_device();
  const CudaStream stream, other;
  const CudaEvent event(false);
  Measurement m = run.row({});
  sample_calls(run, m, [&] {
    std::vector<double> seconds;
    for (unsigned i = 0; i < kCalls; ++i)
      seconds.push_back(host_seconds([&] {
                          event.record(stream.get());
                          other.wait(event.get());
                        }) /
                        2);
    stream.synchronize();
    other.synchronize();
    return seconds;
  });
  run.report(m);
}

// Half of an allocation and a free that sim/memory/pytorch_allocator.h serves from its cache: the allocator of a
// replay.
void call_allocator(BenchmarkRun& run) {
  require_device();
  constexpr unsigned kSizes = 512;
  PytorchAllocator allocator(Bytes{1} << 50);
  std::vector<Bytes> sizes;
  std::vector<Address> blocks;
  for (unsigned i = 0; i < kSizes; ++i)  // 512 B to 64 MiB
    sizes.push_back((Bytes{512} << pattern_word(run.settings().seed, i) % 18) + static_cast<Bytes>(i));
  for (const Bytes size : sizes) blocks.push_back(allocator.allocate(size, 0).value());
  // Every other block stays in use, so that free ones lie between.
  for (unsigned i = 0; i < kSizes; i += 2) allocator.free(blocks[i]);
  const std::uint64_t segments = allocator.events().device_mallocs;
  Measurement m = run.row({});
  // All at once: a call takes less than reading the clock.
  run.sample(m, [&] {
    return host_seconds([&] {
             for (unsigned i = 0; i < kSizes; i += 2) allocator.free(allocator.allocate(sizes[i], 0).value());
           }) /
           kSizes;
  });
  if (allocator.events().device_mallocs != segments)
    throw std::runtime_error("the allocator asked for new segments: these were no hits.");
  run.report(m);
}

// Measures what lies between a moment on the host and one on the device, `kSynchronizations` times per batch.
// `meet(stamp)` makes a kernel note its time in `stamp` and gives the host's time.
void sample_synchronizations(
    const BenchmarkRun& run, Measurement& m, cudaStream_t stream,
    const std::function<std::int64_t(KernelTimestamp*)>& meet,
    const std::function<double(const DeviceClock&, std::int64_t, const KernelTimestamp&)>& seconds_between) {
  DeviceClock clock(stream);
  const TimestampBuffer list(kSynchronizations);
  double uncertainty = 0;
  clock.observe();
  sample_calls(run, m, [&] {
    std::vector<std::int64_t> host;
    std::vector<double> seconds;
    clock.observe();
    for (unsigned i = 0; i < kSynchronizations; ++i) host.push_back(meet(list.at(i)));
    clock.observe();
    const std::vector<KernelTimestamp> stamps = list.read();
    for (unsigned i = 0; i < kSynchronizations; ++i) seconds.push_back(seconds_between(clock, host[i], stamps[i]));
    uncertainty = std::max(uncertainty, clock.uncertainty());
    return seconds;
  });
  char note[80];
  std::snprintf(note, sizeof note, "clocks of host and device related within %.2f us", uncertainty * 1e6);
  m.note = note;
}

void launch_latency(BenchmarkRun& run) {
  require_device();
  const CudaStream stream;
  Measurement m = run.row({});
  sample_synchronizations(
      run, m, stream.get(),
      [&](KernelTimestamp* stamp) {
        stream.synchronize();
        spin_for(std::chrono::microseconds(30));
        launch_timestamped(stamp, 0, stream.get());
        return DeviceClock::host_now();
      },
      [](const DeviceClock& clock, std::int64_t called, const KernelTimestamp& stamp) {
        return static_cast<double>(clock.host_nanoseconds(stamp.start) - called) * 1e-9;
      });
  run.report(m);
}

void call_synchronize_return(BenchmarkRun& run) {
  require_device();
  const CudaStream stream;
  Measurement m = run.row({});
  sample_synchronizations(
      run, m, stream.get(),
      [&](KernelTimestamp* stamp) {
        launch_timestamped(stamp, kWorkCycles, stream.get());
        stream.synchronize();
        return DeviceClock::host_now();
      },
      [](const DeviceClock& clock, std::int64_t returned, const KernelTimestamp& stamp) {
        return static_cast<double>(returned - clock.host_nanoseconds(stamp.end)) * 1e-9;
      });
  run.report(m);
}

void stream_gap_between_kernels(BenchmarkRun& run) {
  require_device();
  const CudaStream stream;
  StreamGate gate;
  Measurement m = run.row({});
  run.sample(m, [&] { return stream_gap_sample(stream.get(), gate); });
  run.report(m);
}

const RegisterBenchmark registered_call_launch{
    {"call_launch", "Host time of a kernel launch.", BenchmarkPlace::cuda, 12, call_launch}};
const RegisterBenchmark registered_launch_latency{
    {"launch_latency", "From the end of a launch call to the kernel's start on an idle stream.", BenchmarkPlace::cuda,
     12, launch_latency}};
const RegisterBenchmark registered_stream_gap{
    {"stream_gap", "From the end of a kernel to the start of the next one, queued behind it.", BenchmarkPlace::cuda, 12,
     stream_gap_between_kernels}};
const RegisterBenchmark registered_call_copy{{"call_copy",
                                              "Host time of an asynchronous copy of 64 KiB of pinned memory.",
                                              BenchmarkPlace::cuda, 12, call_copy}};
const RegisterBenchmark registered_call_event{
    {"call_event", "Host time of an event record or wait.", BenchmarkPlace::cuda, 12, call_event}};
const RegisterBenchmark registered_call_allocator{{"call_allocator",
                                                   "Host time of a hit in the caching allocator, allocation or free.",
                                                   BenchmarkPlace::cuda, 12, call_allocator}};
const RegisterBenchmark registered_call_synchronize_return{
    {"call_synchronize_return", "From the end of the work to the return of cudaStreamSynchronize.",
     BenchmarkPlace::cuda, 12, call_synchronize_return}};

}  // namespace
}  // namespace memwall
