// Device memory that a process cannot have: the driver's own, and its context with the kernels loaded.
#include <algorithm>

#include "validate/bench/cuda/cuda_device.h"
#include "validate/replay/cuda/cuda_handles.h"

namespace memwall {
namespace {

// Runs before all others, while nothing but the context is there.
void context_bytes(BenchmarkRun& run) {
  require_device();
  check(cudaFree(nullptr), "cudaFree");  // makes the context
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  Measurement m = run.row({});
  m.unit = "B";
  std::vector<double> samples;
  for (unsigned i = 0; i < std::max(run.settings().fewest_samples, 1u); ++i) {
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    samples.push_back(static_cast<double>(total - free));
  }
  summarize_samples(samples, m);
  m.note = "all memory of the device minus what is free: other processes on it count as well.";
  run.report(m);
}

const RegisterBenchmark registered_context_bytes{{"context_bytes",
                                                  "device memory taken by the driver and a context without buffers",
                                                  BenchmarkPlace::cuda, 1, context_bytes}};

}  // namespace
}  // namespace memwall
