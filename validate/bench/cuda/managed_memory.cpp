#include "validate/bench/cuda/managed_memory.h"

#include "validate/bench/benchmark.h"

namespace memwall {

void require_managed_memory() {
  int managed = 0, concurrent = 0;
  check(cudaDeviceGetAttribute(&managed, cudaDevAttrManagedMemory, 0), "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0), "cudaDeviceGetAttribute");
  if (managed == 0 || concurrent == 0)
    throw NotApplicable("needs managed memory that CPU and device can use at once; this device or driver has none.");
}

void prefetch_managed(const ManagedBuffer& range, std::size_t bytes, bool to_device, cudaStream_t stream) {
#if CUDART_VERSION >= 13000
  cudaMemLocation place{};
  place.type = to_device ? cudaMemLocationTypeDevice : cudaMemLocationTypeHost;
  place.id = 0;
  check(cudaMemPrefetchAsync(range.data(), bytes, place, 0, stream), "cudaMemPrefetchAsync");
#else
  check(cudaMemPrefetchAsync(range.data(), bytes, to_device ? 0 : cudaCpuDeviceId, stream), "cudaMemPrefetchAsync");
#endif
}

}  // namespace memwall
