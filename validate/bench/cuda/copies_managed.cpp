// Copies between the device's own memory and managed memory that lives on the host. Before each copy the managed
// range is moved to the host, untimed: a copy may leave it elsewhere.
#include "validate/bench/cuda/cuda_buffers.h"
#include "validate/bench/cuda/cuda_device.h"
#include "validate/bench/cuda/cuda_timing.h"
#include "validate/bench/cuda/managed_memory.h"

namespace memwall {
namespace {

void measure_size(BenchmarkRun& run, const ManagedBuffer& managed, const DeviceBuffer& device, bool to_device,
                  std::size_t bytes) {
  const CudaStream stream;
  const CheckedRange destination{to_device ? device.data() : managed.data(), bytes, to_device};
  Measurement m = run.row({{"bytes", std::to_string(bytes)}});
  m.bytes = static_cast<double>(bytes);
  destination.poison();
  run.sample(m, [&] {
    prefetch_managed(managed, bytes, false, stream.get());
    stream.synchronize();
    // By the host's clock: a copy of managed memory may wait for the stream.
    return host_seconds([&] {
      check(cudaMemcpyAsync(destination.data, to_device ? managed.data() : device.data(), bytes, cudaMemcpyDefault,
                            stream.get()),
            "cudaMemcpyAsync");
      stream.synchronize();
    });
  });
  destination.verify(run.settings().seed, m);
  run.report(m);
}

void measure_managed(BenchmarkRun& run, bool to_device) {
  require_device();
  require_managed_memory();
  // Twice this is far less than the device has free: nothing is evicted, wherever the driver puts it.
  const std::size_t largest = largest_device_buffer(run, 4, std::size_t{1} << 30);
  const ManagedBuffer managed(largest);
  const DeviceBuffer device(largest);
  CheckedRange{to_device ? managed.data() : device.data(), largest, !to_device}.fill(run.settings().seed);
  for (const std::size_t bytes : copy_sizes(largest)) {
    if (run.out_of_time()) return;
    measure_size(run, managed, device, to_device, bytes);
  }
}

void copy_host_hbm_managed(BenchmarkRun& run) { measure_managed(run, true); }
void copy_hbm_host_managed(BenchmarkRun& run) { measure_managed(run, false); }

const RegisterBenchmark registered_copy_host_hbm_managed{
    {"copy_host_hbm_managed", "copies of managed memory that lives on the host to the device, by size",
     BenchmarkPlace::cuda, 70, copy_host_hbm_managed}};
const RegisterBenchmark registered_copy_hbm_host_managed{
    {"copy_hbm_host_managed", "copies of the device to managed memory that lives on the host, by size",
     BenchmarkPlace::cuda, 70, copy_hbm_host_managed}};

}  // namespace
}  // namespace memwall
