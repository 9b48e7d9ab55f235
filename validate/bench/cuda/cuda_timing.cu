#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "validate/bench/cuda/cuda_timing.h"

namespace memwall {
namespace {

__device__ std::uint64_t nanoseconds_now() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

// flags[0] is set by the host to open, flags[1] by this kernel where it did not wait any longer.
__global__ void hold(volatile std::uint32_t* flags, std::uint64_t longest) {
  const std::uint64_t start = nanoseconds_now();
  while (flags[0] == 0) {
    if (nanoseconds_now() - start > longest) {
      flags[1] = 1;
      __threadfence_system();
      return;
    }
    __nanosleep(200);
  }
}

}  // namespace

StreamGate::StreamGate() : flags_(2 * sizeof(std::uint32_t)) {
  flags_.as<volatile std::uint32_t>()[0] = 1;
  flags_.as<volatile std::uint32_t>()[1] = 0;
}

StreamGate::~StreamGate() {
  open();
  // The kernel reads the flags until it sees that: they must outlive it.
  cudaEventSynchronize(passed_.get());
}

void StreamGate::close(cudaStream_t stream) {
  auto* flags = flags_.as<volatile std::uint32_t>();
  flags[0] = 0;
  flags[1] = 0;
  hold<<<1, 1, 0, stream>>>(flags, static_cast<std::uint64_t>(kGateSeconds * 1e9));
  check(cudaGetLastError(), "launch of the kernel that holds a stream");
  passed_.record(stream);
}

void StreamGate::open() { flags_.as<volatile std::uint32_t>()[0] = 1; }

bool StreamGate::gave_up() const { return flags_.as<volatile std::uint32_t>()[1] != 0; }

double CudaTiming::seconds(cudaStream_t stream, const Submit& submit) {
  for (unsigned attempt = 0; attempt < kGateAttempts; ++attempt) {
    gate_.close(stream);
    try {
      submit(gate_, begin_, end_);
    } catch (...) {
      gate_.open();
      throw;
    }
    gate_.open();
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    if (!gate_.gave_up()) return end_.seconds_since(begin_);
  }
  throw std::runtime_error("the work could not be queued within " + std::to_string(kGateSeconds) +
                           " s behind a held stream: a call waits for the stream, or the launch queue is full.");
}

double CudaTiming::seconds_per_operation(cudaStream_t stream, unsigned operations,
                                         const std::function<void()>& submit) {
  const double total = seconds(stream, [&](const StreamGate&, const CudaEvent& begin, const CudaEvent& end) {
    begin.record(stream);
    submit();
    end.record(stream);
  });
  return total / operations;
}

unsigned operations_for(double seconds, double aim, unsigned most) {
  if (!(seconds > 0)) return most;
  return static_cast<unsigned>(std::clamp(std::ceil(aim / seconds), 1.0, static_cast<double>(most)));
}

double host_seconds(const std::function<void()>& operation) {
  const auto start = std::chrono::steady_clock::now();
  operation();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace memwall
