// Values that a kernel found against those that it expected: how many are wrong, and the first of them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "validate/replay/cuda/cuda_handles.h"
#include "validate/replay/pattern.h"

namespace memwall {

// In device memory, filled by note_value.
struct DeviceTally {
  unsigned wrong;  // values; the others describe the first of them
  unsigned long long index;
  double found, expected;
};

class DeviceCheck {
 public:
  DeviceCheck() : tally_(sizeof(DeviceTally)) {}
  // Where check kernels that are queued next note what they find. Forgets what was found before.
  DeviceTally* begin(cudaStream_t stream) const {
    check(cudaMemsetAsync(tally_.data(), 0, sizeof(DeviceTally), stream), "cudaMemsetAsync of a check");
    return tally_.as<DeviceTally>();
  }
  // "" if no value was wrong, else a sentence. Synchronises.
  std::string verdict(cudaStream_t stream) const {
    DeviceTally tally{};
    check(cudaMemcpyAsync(&tally, tally_.data(), sizeof tally, cudaMemcpyDeviceToHost, stream),
          "cudaMemcpyAsync of a check");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    if (tally.wrong == 0) return "";
    return "wrong result: " + std::to_string(tally.wrong) + " sampled values; number " + std::to_string(tally.index) +
           " is " + std::to_string(tally.found) + ", expected " + std::to_string(tally.expected);
  }

 private:
  DeviceBuffer tally_;
};

// Element `index` of the random data `seed`: uniform in (-1, 1), 24 bits. The same on host and device.
MEMWALL_HOST_DEVICE constexpr float random_value(std::uint64_t seed, std::uint64_t index) {
  const auto bits = static_cast<std::int32_t>(pattern_word(seed, index) >> 40);  // 0 to 2^24 - 1
  return static_cast<float>(2 * bits + 1 - (1 << 24)) * (1.0f / (1 << 24));
}

#ifdef __CUDACC__
// NaN, where something was never written, is wrong whatever is allowed.
__device__ inline void note_value(DeviceTally* tally, std::uint64_t index, double found, double expected,
                                  double allowed) {
  const double difference = found > expected ? found - expected : expected - found;
  if (difference <= allowed) return;
  if (atomicAdd(&tally->wrong, 1u) == 0) {
    tally->index = index;
    tally->found = found;
    tally->expected = expected;
  }
}
#endif

}  // namespace memwall
