#include "validate/bench/cuda/kernel_sampler.h"

#include <cstdio>

namespace memwall {

KernelSampler::KernelSampler() : gap_(stream_gap(stream_.get())) {}

void KernelSampler::sample(const BenchmarkRun& run, Measurement& m, const std::function<void()>& launch) {
  launch();  // outside of the held stream: the first launch loads the kernel, which may wait for the device
  stream_.synchronize();
  const auto period = [&](unsigned operations) {
    return timing_.seconds_per_operation(stream_.get(), operations, [&] {
      for (unsigned i = 0; i < operations; ++i) launch();
    });
  };
  const unsigned operations = operations_for(period(1));
  run.sample(m, [&] { return period(operations) - gap_; });
  char note[80];
  std::snprintf(note, sizeof note, "less a gap of %.3f us between queued kernels", gap_ * 1e6);
  m.note = note;
  if (m.median <= 0) note_verdict(m, "takes no longer than the gap between queued kernels");
}

double l2_bytes() {
  int device = 0, bytes = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, device), "cudaDeviceGetAttribute");
  return bytes;
}

void note_verdict(Measurement& m, const std::string& verdict) {
  if (verdict.empty()) return;
  m.status = MeasurementStatus::failed;
  m.note = verdict;
}

}  // namespace memwall
