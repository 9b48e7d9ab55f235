// Latency of one access to device memory: each load's address is the value that the last one brought.
#include <utility>
#include <vector>

#include "validate/bench/cuda/cuda_buffers.h"
#include "validate/bench/cuda/cuda_device.h"
#include "validate/bench/cuda/cuda_timing.h"
#include "validate/replay/pattern.h"

namespace memwall {
namespace {

constexpr std::size_t kElement = 128;  // bytes: a cache line each
constexpr std::size_t kWordsPerElement = kElement / sizeof(std::uint32_t);
constexpr std::size_t kSmallestPointerChase = std::size_t{256} << 10;
constexpr std::size_t kLargestPointerChase = std::size_t{8} << 30;
constexpr unsigned kSteps = 20'000;  // per sample

// A random cycle through all of `count` elements (S. Sattolo, "An algorithm to generate a random cyclic
// permutation", 1986): element i is followed by element next[i].
std::vector<std::uint32_t> random_cycle(std::size_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> next(count);
  for (std::size_t i = 0; i < count; ++i) next[i] = static_cast<std::uint32_t>(i);
  for (std::size_t i = count - 1; i > 0; --i) std::swap(next[i], next[pattern_word(seed, i) % i]);
  return next;
}

__global__ void scatter(const std::uint32_t* next, std::size_t count, std::uint32_t* elements) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride)
    elements[i * kWordsPerElement] = next[i];
}

// Goes on where the last launch stopped, so that a large working set is not read from the cache that the last
// launch filled. The first-level cache is bypassed.
__global__ void chase(const std::uint32_t* elements, unsigned steps, std::uint32_t* position) {
  std::uint32_t at = *position;
  for (unsigned i = 0; i < steps; ++i)
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(at) : "l"(elements + std::size_t{at} * kWordsPerElement));
  *position = at;
}

void measure_working_set(BenchmarkRun& run, CudaTiming& timing, const CudaStream& stream, const DeviceBuffer& elements,
                         std::size_t working_set) {
  const std::size_t count = working_set / kElement;
  const std::vector<std::uint32_t> next = random_cycle(count, run.settings().seed);
  const DeviceBuffer order(count * sizeof(std::uint32_t)), position(sizeof(std::uint32_t));
  check(cudaMemcpy(order.data(), next.data(), order.bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
  check(cudaMemset(position.data(), 0, position.bytes()), "cudaMemset");
  scatter<<<1024, 256>>>(order.as<std::uint32_t>(), count, elements.as<std::uint32_t>());
  check(cudaGetLastError(), "launch of the kernel that lays out the cycle");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");

  std::uint64_t steps = 0;
  const auto launch = [&] {
    chase<<<1, 1, 0, stream.get()>>>(elements.as<std::uint32_t>(), kSteps, position.as<std::uint32_t>());
    check(cudaGetLastError(), "launch of the chasing kernel");
    steps += kSteps;
  };
  launch();
  stream.synchronize();
  Measurement m = run.row({{"working_set", std::to_string(working_set)}});
  run.sample(m, [&] { return timing.seconds_per_operation(stream.get(), 1, launch) / kSteps; });

  std::uint32_t expected = 0, found = 0;
  for (std::uint64_t i = 0; i < steps % count; ++i) expected = next[expected];  // after `count` it is back
  check(cudaMemcpy(&found, position.data(), sizeof found, cudaMemcpyDeviceToHost), "cudaMemcpy");
  if (found != expected) {
    m.status = MeasurementStatus::failed;
    m.note = "wrong data: the chase ended at element " + std::to_string(found) + " instead of " +
             std::to_string(expected) + ".";
  }
  run.report(m);
}

void latency_hbm_chase(BenchmarkRun& run) {
  require_device();
  const std::size_t largest = largest_device_buffer(run, 1, kLargestPointerChase);
  const DeviceBuffer elements(largest);
  const CudaStream stream;
  CudaTiming timing;
  for (const std::size_t working_set : sizes_between(kSmallestPointerChase, largest, 2)) {
    if (run.out_of_time()) return;
    measure_working_set(run, timing, stream, elements, working_set);
  }
}

const RegisterBenchmark registered_latency_hbm_chase{{"latency_hbm_chase",
                                                      "one dependent access to device memory, by working set",
                                                      BenchmarkPlace::cuda, 50, latency_hbm_chase}};

}  // namespace
}  // namespace memwall
