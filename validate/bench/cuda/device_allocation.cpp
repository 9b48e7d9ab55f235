// What it costs to get memory: cudaMalloc, cudaFree, the stream-ordered pool, page-locked host memory, and mapping
// physical memory into a reserved range (what an allocator with expandable segments does). By the host's clock,
// on an idle device: these are calls.
#include <cuda.h>

#include <cstring>

#include "validate/bench/cuda/cuda_buffers.h"
#include "validate/bench/cuda/cuda_device.h"
#include "validate/bench/cuda/cuda_timing.h"

namespace memwall {
namespace {

constexpr std::size_t kSmallestDeviceAllocation = std::size_t{4} << 10;
constexpr std::size_t kLargestDeviceAllocation = std::size_t{1} << 30;

// Powers of four, and the sizes of PyTorch's segments: 2 MiB and 20 MiB.
std::vector<std::size_t> allocation_sizes(std::size_t largest) {
  std::vector<std::size_t> sizes = copy_sizes(largest);
  if (const std::size_t segment = std::size_t{20} << 20; segment <= largest) sizes.push_back(segment);
  return sizes;
}

// A row per size; `seconds` makes and gives back memory of that size and says what the call in question took.
void measure_sizes(BenchmarkRun& run, const std::vector<std::size_t>& sizes,
                   const std::function<double(std::size_t)>& seconds) {
  for (const std::size_t bytes : sizes) {
    if (run.out_of_time()) return;
    Measurement m = run.row({{"bytes", std::to_string(bytes)}});
    run.sample(m, [&] { return seconds(bytes); });
    run.report(m);
  }
}

void measure_malloc(BenchmarkRun& run, bool of_free) {
  require_device();
  measure_sizes(run, allocation_sizes(largest_device_buffer(run, 1, kLargestDeviceAllocation)), [&](std::size_t bytes) {
    void* data = nullptr;
    const double allocation = host_seconds([&] { check(cudaMalloc(&data, bytes), "cudaMalloc"); });
    const double release = host_seconds([&] { check(cudaFree(data), "cudaFree"); });
    return of_free ? release : allocation;
  });
}

void device_malloc(BenchmarkRun& run) { measure_malloc(run, false); }
void device_free(BenchmarkRun& run) { measure_malloc(run, true); }

// The device's default pool, told to keep what is given back; on leaving it is emptied and told as before.
class RetainingPool {
 public:
  RetainingPool() {
    check(cudaDeviceGetDefaultMemPool(&pool_, 0), "cudaDeviceGetDefaultMemPool");
    check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &before_), "cudaMemPoolGetAttribute");
    std::uint64_t everything = UINT64_MAX;
    check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &everything), "cudaMemPoolSetAttribute");
  }
  ~RetainingPool() {
    cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &before_);
    cudaMemPoolTrimTo(pool_, 0);
  }
  RetainingPool(const RetainingPool&) = delete;
  RetainingPool& operator=(const RetainingPool&) = delete;

 private:
  cudaMemPool_t pool_ = nullptr;
  std::uint64_t before_ = 0;
};

void device_malloc_async(BenchmarkRun& run) {
  require_device();
  int supported = 0;
  check(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0), "cudaDeviceGetAttribute");
  if (supported == 0) throw NotApplicable("needs memory pools; this device or driver has none.");
  const RetainingPool pool;
  const CudaStream stream;
  measure_sizes(run, allocation_sizes(largest_device_buffer(run, 2, kLargestDeviceAllocation)), [&](std::size_t bytes) {
    void* data = nullptr;
    const double seconds = host_seconds([&] { check(cudaMallocAsync(&data, bytes, stream.get()), "cudaMallocAsync"); });
    check(cudaFreeAsync(data, stream.get()), "cudaFreeAsync");
    stream.synchronize();
    return seconds;
  });
}

void host_alloc_pinned(BenchmarkRun& run) {
  require_device();
  for (const std::size_t bytes : allocation_sizes(std::min(run.settings().largest_buffer, kLargestDeviceAllocation))) {
    if (run.out_of_time()) return;
    Measurement m = run.row({{"bytes", std::to_string(bytes)}, {"method", "cudaHostAlloc"}});
    run.sample(m, [&] {
      void* data = nullptr;
      const double seconds =
          host_seconds([&] { check(cudaHostAlloc(&data, bytes, cudaHostAllocDefault), "cudaHostAlloc"); });
      check(cudaFreeHost(data), "cudaFreeHost");
      return seconds;
    });
    run.report(m);
  }
}

void check_driver(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS)
    throw std::runtime_error(std::string(call) + " failed with the driver's error " + std::to_string(result) + ".");
}

// The driver's functions that map physical memory, found at run time.
struct MappingCalls {
  decltype(&cuDeviceGetAttribute) attribute = find<decltype(attribute)>("cuDeviceGetAttribute");
  decltype(&cuMemGetAllocationGranularity) granularity = find<decltype(granularity)>("cuMemGetAllocationGranularity");
  decltype(&cuMemAddressReserve) reserve = find<decltype(reserve)>("cuMemAddressReserve");
  decltype(&cuMemAddressFree) free = find<decltype(free)>("cuMemAddressFree");
  decltype(&cuMemCreate) create = find<decltype(create)>("cuMemCreate");
  decltype(&cuMemRelease) release = find<decltype(release)>("cuMemRelease");
  decltype(&cuMemMap) map = find<decltype(map)>("cuMemMap");
  decltype(&cuMemUnmap) unmap = find<decltype(unmap)>("cuMemUnmap");
  decltype(&cuMemSetAccess) set_access = find<decltype(set_access)>("cuMemSetAccess");

  template <typename Function>
  static Function find(const char* name) {
    void* const found = driver_entry_point(name, 10020);  // all are of CUDA 10.2
    Function function = nullptr;
    static_assert(sizeof function == sizeof found);
    std::memcpy(&function, &found, sizeof found);
    return function;
  }
};

// A reserved range of addresses, and physical memory behind it while it is mapped.
class MappedRange {
 public:
  MappedRange(const MappingCalls& calls, std::size_t bytes) : calls_(calls), bytes_(bytes) {
    place_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    place_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    place_.location.id = 0;
    check_driver(calls_.granularity(&granularity_, &place_, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                 "cuMemGetAllocationGranularity");
    check_driver(calls_.reserve(&address_, bytes_, 0, 0, 0), "cuMemAddressReserve");
  }
  ~MappedRange() {
    unmap();
    calls_.free(address_, bytes_);
  }
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;

  std::size_t granularity() const { return granularity_; }
  void* data() const { return reinterpret_cast<void*>(address_); }

  // REQUIRES: `bytes` is a multiple of the granularity and at most the range; nothing is mapped.
  void map(std::size_t bytes) {
    check_driver(calls_.create(&memory_, bytes, &place_, 0), "cuMemCreate");
    created_ = true;
    check_driver(calls_.map(address_, bytes, 0, memory_, 0), "cuMemMap");
    mapped_ = bytes;
    CUmemAccessDesc access{};
    access.location = place_.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    check_driver(calls_.set_access(address_, bytes, &access, 1), "cuMemSetAccess");
  }
  void unmap() {
    if (mapped_ > 0) calls_.unmap(address_, mapped_);
    if (created_) calls_.release(memory_);
    mapped_ = 0;
    created_ = false;
  }

 private:
  const MappingCalls& calls_;
  std::size_t bytes_, granularity_ = 0, mapped_ = 0;
  CUmemAllocationProp place_{};
  CUdeviceptr address_ = 0;
  CUmemGenericAllocationHandle memory_ = 0;
  bool created_ = false;
};

// Creating, mapping and making accessible, in one: none of the three is of use alone.
void virtual_memory_map(BenchmarkRun& run) {
  require_device();
  check(cudaFree(nullptr), "cudaFree");  // the driver's functions want a context
  const MappingCalls calls;
  int supported = 0;
  check_driver(calls.attribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0),
               "cuDeviceGetAttribute");
  if (supported == 0) throw NotApplicable("needs virtual memory management; this device or driver has none.");
  const std::size_t largest = largest_device_buffer(run, 1, kLargestDeviceAllocation);
  MappedRange range(calls, largest);
  for (const std::size_t bytes : allocation_sizes(largest)) {
    if (run.out_of_time()) return;
    if (bytes % range.granularity() != 0) continue;
    Measurement m = run.row({{"bytes", std::to_string(bytes)}});
    run.sample(m, [&] {
      const double seconds = host_seconds([&] { range.map(bytes); });
      range.unmap();
      return seconds;
    });
    range.map(bytes);
    const CheckedRange contents{range.data(), bytes, true};
    contents.fill(run.settings().seed);
    contents.verify(run.settings().seed, m);
    range.unmap();
    run.report(m);
  }
}

const RegisterBenchmark registered_device_malloc{
    {"device_malloc", "the call cudaMalloc, by size", BenchmarkPlace::cuda, 35, device_malloc}};
const RegisterBenchmark registered_device_free{
    {"device_free", "the call cudaFree on an idle device, by size", BenchmarkPlace::cuda, 35, device_free}};
const RegisterBenchmark registered_device_malloc_async{
    {"device_malloc_async", "the call cudaMallocAsync from a pool that keeps memory, by size", BenchmarkPlace::cuda, 60,
     device_malloc_async}};
const RegisterBenchmark registered_host_alloc_pinned{
    {"host_alloc_pinned", "the call cudaHostAlloc, by size", BenchmarkPlace::cuda, 60, host_alloc_pinned}};
const RegisterBenchmark registered_virtual_memory_map{{"virtual_memory_map",
                                                       "physical memory created, mapped and made accessible, by size",
                                                       BenchmarkPlace::cuda, 60, virtual_memory_map}};

}  // namespace
}  // namespace memwall
