// What the calls of the host back end cost the calling thread, and how soon work begins and is seen to have ended.
#include <chrono>
#include <thread>

#include "sim/memory/pytorch_allocator.h"
#include "validate/bench/host_device.h"

namespace memwall {
namespace {

using Clock = std::chrono::steady_clock;

const KernelWork kShort{OperatorClass::elementwise, DataType::fp32, 1e5, 0};  // about a microsecond
const KernelWork kLong{OperatorClass::elementwise, DataType::fp32, 2e7, 0};   // about a hundred

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Until the stream's thread sleeps, as it does between the steps of a schedule that waits for something.
void let_streams_sleep() { std::this_thread::sleep_for(std::chrono::microseconds(300)); }

// One row without parameters of what `operation` says that it took.
void measure(BenchmarkRun& run, const std::function<double()>& operation) {
  Measurement m = run.row({});
  run.sample(m, operation);
  run.report(m);
}

// Per call of `call`, given to a stream that is busy, as in a step that is limited by the device.
double seconds_per_call(HostDevice& device, const std::function<void()>& call) {
  constexpr int kCalls = 16;
  device.backend().synchronize_device();
  device.backend().kernel(0, kComputeStream, kLong, {});
  const auto start = Clock::now();
  for (int i = 0; i < kCalls; ++i) call();
  const double seconds = seconds_since(start) / kCalls;
  device.backend().synchronize_device();
  return seconds;
}

void call_launch(BenchmarkRun& run) {
  HostDevice device(run, MiB(1));
  measure(run,
          [&] { return seconds_per_call(device, [&] { device.backend().kernel(1, kComputeStream, kShort, {}); }); });
}

void call_copy(BenchmarkRun& run) {
  HostDevice device(run, MiB(1));
  const HostBuffer from(device.backend(), PlaceClass::pinned, 4096), to(device.backend(), PlaceClass::device, 4096);
  measure(run, [&] {
    return seconds_per_call(device,
                            [&] { device.backend().copy(1, kComputeStream, from.read(4096), to.written(4096), 4096); });
  });
}

// The mean of a record and a wait.
void call_event(BenchmarkRun& run) {
  HostDevice device(run, MiB(1));
  measure(run, [&] {
    return seconds_per_call(device,
                            [&] {
                              device.backend().record(0, kComputeStream);
                              device.backend().wait(0, kComputeStream);
                            }) /
           2;
  });
}

void launch_latency(BenchmarkRun& run) {
  HostDevice device(run, MiB(1));
  measure(run, [&] {
    let_streams_sleep();
    device.backend().kernel(0, kComputeStream, kShort, {});
    const double returned = to_seconds(device.backend().now());
    return device.times_of(0).start - returned;
  });
}

void stream_gap(BenchmarkRun& run) {
  HostDevice device(run, MiB(1));
  measure(run, [&] {
    constexpr OpId kCount = 16;
    device.backend().kernel(0, kComputeStream, kLong, {});  // until all are queued
    for (OpId id = 1; id <= kCount; ++id) device.backend().kernel(id, kComputeStream, kShort, {});
    double gaps = 0;
    for (OpId id = 2; id <= kCount; ++id) gaps += device.times_of(id).start - device.times_of(id - 1).end;
    return gaps / (kCount - 1);
  });
}

void call_synchronize_return(BenchmarkRun& run) {
  HostDevice device(run, MiB(1));
  measure(run, [&] {
    device.backend().kernel(0, kComputeStream, kLong, {});
    device.backend().synchronize_stream(kComputeStream);
    const double returned = to_seconds(device.backend().now());
    return returned - device.times_of(0).end;
  });
}

// An allocation that the caching allocator serves from what it has, or its free: the mean of the two.
void call_allocator(BenchmarkRun& run) {
  HostDevice device(run, MiB(64));
  PytorchAllocator allocator(MiB(64), &device.backend().device_memory());
  measure(run, [&] {
    constexpr int kCalls = 100;
    const auto start = Clock::now();
    for (int i = 0; i < kCalls; ++i) {
      const auto address = allocator.allocate(MiB(3), 0);
      if (!address) throw std::runtime_error("the caching allocator found no room in an empty arena.");
      allocator.free(*address);
    }
    return seconds_since(start) / (2 * kCalls);
  });
  allocator.release_cached();
}

// The driver's part: segments of the sizes that the caching allocator asks for.
void measure_segments(BenchmarkRun& run, bool obtaining) {
  const Bytes largest = std::min(largest_host_buffer(run), MiB(64));
  HostDevice device(run, largest);
  SegmentSource& memory = device.backend().device_memory();
  for (const Bytes bytes : {MiB(2), MiB(20), MiB(64)}) {
    if (bytes > largest && bytes > MiB(2)) break;
    if (run.out_of_time()) return;
    Measurement m = run.row({{"bytes", std::to_string(bytes)}});
    run.sample(m, [&] {
      const auto start = Clock::now();
      const auto address = memory.obtain(bytes);
      const auto between = Clock::now();
      if (!address) throw NotApplicable("a segment of " + std::to_string(bytes) + " bytes does not fit in the arena");
      memory.give_back(*address, bytes);
      const double all = seconds_since(start), first = std::chrono::duration<double>(between - start).count();
      return obtaining ? first : all - first;
    });
    run.report(m);
  }
}

void device_malloc(BenchmarkRun& run) { measure_segments(run, true); }
void device_free(BenchmarkRun& run) { measure_segments(run, false); }

const RegisterBenchmark registered_call_launch{
    {"call_launch", "the call that gives a kernel to a busy stream", BenchmarkPlace::host, 16, call_launch}};
const RegisterBenchmark registered_call_copy{
    {"call_copy", "the call that gives a copy to a busy stream", BenchmarkPlace::host, 16, call_copy}};
const RegisterBenchmark registered_call_event{{"call_event",
                                               "a call that records an event, or makes a stream wait for one",
                                               BenchmarkPlace::host, 16, call_event}};
const RegisterBenchmark registered_launch_latency{{"launch_latency",
                                                   "from the return of a launch to the start on an idle stream",
                                                   BenchmarkPlace::host, 16, launch_latency}};
const RegisterBenchmark registered_stream_gap{{"stream_gap",
                                               "from the end of a kernel to the start of the next, queued behind it",
                                               BenchmarkPlace::host, 16, stream_gap}};
const RegisterBenchmark registered_call_synchronize_return{
    {"call_synchronize_return", "from the end of a stream's work to the return of the waiting call",
     BenchmarkPlace::host, 16, call_synchronize_return}};
const RegisterBenchmark registered_call_allocator{
    {"call_allocator", "a hit in the caching allocator, or the free of it", BenchmarkPlace::host, 16, call_allocator}};
const RegisterBenchmark registered_device_malloc{
    {"device_malloc", "a segment of the arena is obtained, by size", BenchmarkPlace::host, 18, device_malloc}};
const RegisterBenchmark registered_device_free{
    {"device_free", "a segment of the arena is given back, by size", BenchmarkPlace::host, 18, device_free}};

}  // namespace
}  // namespace memwall
