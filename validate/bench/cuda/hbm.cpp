// Bandwidth of device memory and of the cache before it: read, write and triad by working set.
#include <cmath>

#include "validate/bench/cuda/bandwidth_kernels.h"
#include "validate/bench/cuda/cuda_device.h"
#include "validate/bench/cuda/cuda_timing.h"

namespace memwall {
namespace {

constexpr std::size_t kSmallestHbm = std::size_t{256} << 10;
constexpr std::size_t kLargestHbm = std::size_t{8} << 30;
constexpr double kLaunchSeconds = 1e-3;  // of one launch: long beside what launching costs

// So many passes that a launch takes about kLaunchSeconds.
unsigned passes_for(CudaTiming& timing, const CudaStream& stream, const std::function<void(unsigned)>& launch) {
  launch(1);  // loads the kernel
  stream.synchronize();
  const auto seconds = [&](unsigned passes) {
    return timing.seconds_per_operation(stream.get(), 1, [&] { launch(passes); });
  };
  // The difference is free of what a launch costs.
  const double each = (seconds(9) - seconds(1)) / 8;
  return operations_for(each, kLaunchSeconds, 1u << 14);
}

// Seconds per pass. `launch` is given the number of passes.
void sample_passes(BenchmarkRun& run, Measurement& m, CudaTiming& timing, const CudaStream& stream, unsigned passes,
                   const std::function<void(unsigned)>& launch) {
  run.sample(m, [&] { return timing.seconds_per_operation(stream.get(), 1, [&] { launch(passes); }) / passes; });
}

Measurement row_of(const BenchmarkRun& run, std::size_t working_set) {
  Measurement m = run.row({{"working_set", std::to_string(working_set)}});
  m.bytes = static_cast<double>(working_set);
  return m;
}

void hbm_read(BenchmarkRun& run) {
  require_device();
  const std::size_t largest = largest_device_buffer(run, 1, kLargestHbm);
  const DeviceBuffer data(largest);
  CheckedRange{data.data(), largest, true}.fill(run.settings().seed);
  const CudaStream stream;
  const DeviceCounter sum;
  CudaTiming timing;
  for (const std::size_t bytes : sizes_between(kSmallestHbm, largest, 2)) {
    if (run.out_of_time()) return;
    Measurement m = row_of(run, bytes);
    const auto launch = [&](unsigned passes) {
      launch_stream_read(data.data(), bytes, passes, sum.get(), stream.get());
    };
    const unsigned passes = passes_for(timing, stream, launch);
    sample_passes(run, m, timing, stream, passes, launch);
    sum.reset();
    launch(passes);
    stream.synchronize();
    if (sum.value() != plain_sum(data.data(), bytes) * passes) {  // both modulo 2^64
      m.status = MeasurementStatus::failed;
      m.note = "wrong data: the sum of what was read is not that of what is there.";
    }
    run.report(m);
  }
}

void hbm_write(BenchmarkRun& run) {
  require_device();
  const std::size_t largest = largest_device_buffer(run, 1, kLargestHbm);
  const DeviceBuffer data(largest);
  const CudaStream stream;
  CudaTiming timing;
  const auto tag = static_cast<std::uint32_t>(run.settings().seed * 0x9e3779b1u);
  for (const std::size_t bytes : sizes_between(kSmallestHbm, largest, 2)) {
    if (run.out_of_time()) return;
    Measurement m = row_of(run, bytes);
    const auto launch = [&](unsigned passes) { launch_stream_write(data.data(), bytes, passes, tag, stream.get()); };
    const unsigned passes = passes_for(timing, stream, launch);
    CheckedRange{data.data(), bytes, true}.poison();
    sample_passes(run, m, timing, stream, passes, launch);
    note_mismatches(wrong_after_write(data.data(), bytes, tag), std::to_string(bytes / 16) + " elements", m);
    run.report(m);
  }
}

// The working set is that of all three arrays: three times a power of two.
void hbm_triad(BenchmarkRun& run) {
  require_device();
  const std::size_t largest = largest_device_buffer(run, 3, kLargestHbm / 4);
  const DeviceBuffer to(largest), b(largest), c(largest);
  fill_uniform(b.as<float>(), largest / sizeof(float), run.settings().seed);
  fill_uniform(c.as<float>(), largest / sizeof(float), run.settings().seed + 1);
  const CudaStream stream;
  CudaTiming timing;
  for (const std::size_t bytes : sizes_between(kSmallestHbm / 4, largest, 2)) {
    if (run.out_of_time()) return;
    Measurement m = row_of(run, 3 * bytes);
    const auto launch = [&](unsigned passes) {
      launch_stream_triad(to.as<float>(), b.as<float>(), c.as<float>(), bytes, passes, stream.get());
    };
    const unsigned passes = passes_for(timing, stream, launch);
    CheckedRange{to.data(), bytes, true}.poison();
    sample_passes(run, m, timing, stream, passes, launch);
    note_mismatches(wrong_after_triad(to.as<float>(), b.as<float>(), c.as<float>(), bytes),
                    std::to_string(bytes / sizeof(float)) + " numbers", m);
    run.report(m);
  }
}

const RegisterBenchmark registered_hbm_read{
    {"hbm_read", "reading device memory, by working set: cache and HBM bandwidth", BenchmarkPlace::cuda, 11, hbm_read}};
const RegisterBenchmark registered_hbm_write{
    {"hbm_write", "writing device memory, by working set", BenchmarkPlace::cuda, 14, hbm_write}};
const RegisterBenchmark registered_hbm_triad{
    {"hbm_triad", "a = b + s * c in device memory, by working set of all three", BenchmarkPlace::cuda, 13, hbm_triad}};

}  // namespace
}  // namespace memwall
