// Copies between host memory and the device, one at a time: pinned, pageable, and within the device.
#include <functional>

#include "validate/bench/cuda/cuda_buffers.h"
#include "validate/bench/cuda/cuda_device.h"
#include "validate/bench/cuda/cuda_timing.h"

namespace memwall {
namespace {

struct CopyPath {
  void* from = nullptr;
  void* to = nullptr;
  cudaMemcpyKind kind = cudaMemcpyDefault;
  // The call returns at once, so that copies can be queued behind a held stream. Else the host's clock is used.
  bool queues = true;
};

CheckedRange source(const CopyPath& path, std::size_t bytes) {
  return {path.from, bytes, path.kind != cudaMemcpyHostToDevice};
}
CheckedRange destination(const CopyPath& path, std::size_t bytes) {
  return {path.to, bytes, path.kind != cudaMemcpyDeviceToHost};
}

void measure_size(BenchmarkRun& run, CudaTiming& timing, const CudaStream& stream, const CopyPath& path,
                  std::size_t bytes) {
  Measurement m = run.row({{"bytes", std::to_string(bytes)}});
  m.bytes = static_cast<double>(bytes);
  destination(path, bytes).poison();
  unsigned operations = 1;
  const auto copies = [&] {
    for (unsigned i = 0; i < operations; ++i)
      check(cudaMemcpyAsync(path.to, path.from, bytes, path.kind, stream.get()), "cudaMemcpyAsync");
  };
  const auto finished = [&] {
    copies();
    stream.synchronize();
  };
  finished();  // whatever is set up on first use must not be timed, and must not wait for a held stream
  operations = operations_for(host_seconds(finished));
  run.sample(m, [&] {
    if (path.queues) return timing.seconds_per_operation(stream.get(), operations, copies);
    return host_seconds(finished) / operations;
  });
  destination(path, bytes).verify(run.settings().seed, m);
  run.report(m);
}

void measure_path(BenchmarkRun& run, const CopyPath& path, std::size_t largest) {
  source(path, largest).fill(run.settings().seed);
  const CudaStream stream;
  CudaTiming timing;
  for (const std::size_t bytes : copy_sizes(largest)) {
    if (run.out_of_time()) return;
    measure_size(run, timing, stream, path, bytes);
  }
}

constexpr std::size_t kLargestCopy = std::size_t{1} << 30;

void copy_host_hbm_pinned(BenchmarkRun& run) {
  require_device();
  const std::size_t largest = largest_device_buffer(run, 1, kLargestCopy);
  const DeviceBuffer device(largest);
  const PinnedBuffer host(largest);
  measure_path(run, {host.data(), device.data(), cudaMemcpyHostToDevice, true}, largest);
}

void copy_hbm_host_pinned(BenchmarkRun& run) {
  require_device();
  const std::size_t largest = largest_device_buffer(run, 1, kLargestCopy);
  const DeviceBuffer device(largest);
  const PinnedBuffer host(largest);
  measure_path(run, {device.data(), host.data(), cudaMemcpyDeviceToHost, true}, largest);
}

void copy_host_hbm_pageable(BenchmarkRun& run) {
  require_device();
  const std::size_t largest = largest_device_buffer(run, 1, kLargestCopy);
  const DeviceBuffer device(largest);
  const PageableBuffer host(largest);
  measure_path(run, {host.data(), device.data(), cudaMemcpyHostToDevice, false}, largest);
}

void copy_hbm_host_pageable(BenchmarkRun& run) {
  require_device();
  const std::size_t largest = largest_device_buffer(run, 1, kLargestCopy);
  const DeviceBuffer device(largest);
  const PageableBuffer host(largest);
  measure_path(run, {device.data(), host.data(), cudaMemcpyDeviceToHost, false}, largest);
}

void copy_hbm_hbm(BenchmarkRun& run) {
  require_device();
  const std::size_t largest = largest_device_buffer(run, 2, kLargestCopy);
  const DeviceBuffer from(largest);
  const DeviceBuffer to(largest);
  measure_path(run, {from.data(), to.data(), cudaMemcpyDeviceToDevice, true}, largest);
}

const RegisterBenchmark registered_copy_host_hbm_pinned{{"copy_host_hbm_pinned",
                                                         "copies of page-locked host memory to the device, by size",
                                                         BenchmarkPlace::cuda, 10, copy_host_hbm_pinned}};
const RegisterBenchmark registered_copy_hbm_host_pinned{{"copy_hbm_host_pinned",
                                                         "copies of the device to page-locked host memory, by size",
                                                         BenchmarkPlace::cuda, 10, copy_hbm_host_pinned}};
const RegisterBenchmark registered_copy_host_hbm_pageable{{"copy_host_hbm_pageable",
                                                           "copies of ordinary host memory to the device, by size",
                                                           BenchmarkPlace::cuda, 30, copy_host_hbm_pageable}};
const RegisterBenchmark registered_copy_hbm_host_pageable{{"copy_hbm_host_pageable",
                                                           "copies of the device to ordinary host memory, by size",
                                                           BenchmarkPlace::cuda, 30, copy_hbm_host_pageable}};
const RegisterBenchmark registered_copy_hbm_hbm{
    {"copy_hbm_hbm", "copies within the device, by size", BenchmarkPlace::cuda, 20, copy_hbm_hbm}};

}  // namespace
}  // namespace memwall
