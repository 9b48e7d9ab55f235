// Unified memory: what a page fault, a prefetch and eviction cost.
//
// A range is never larger than what the device has free, except in managed_oversubscribed, which runs only on
// request: it asks for more than what is free, and evicting under faults can hang a device that is shared.
#include <algorithm>
#include <array>
#include <cstdio>

#include "validate/bench/cuda/cuda_buffers.h"
#include "validate/bench/cuda/cuda_device.h"
#include "validate/bench/cuda/cuda_timing.h"
#include "validate/bench/cuda/managed_memory.h"

namespace memwall {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kSmallestManaged = std::size_t{2} << 20;
constexpr std::size_t kLargestManaged = std::size_t{1} << 30;

// The first word of every page becomes 1, or (`add`) 1 more than it was.
__global__ void touch(unsigned* words, std::size_t pages, bool add) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < pages; i += stride)
    words[i * (kPage / sizeof(unsigned))] = add ? words[i * (kPage / sizeof(unsigned))] + 1 : 1;
}

__global__ void count_untouched(const unsigned* words, std::size_t pages, unsigned touches, unsigned long long* wrong) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < pages; i += stride)
    if (words[i * (kPage / sizeof(unsigned))] != touches) atomicAdd(wrong, 1ull);
}

void launch_touch(const ManagedBuffer& range, bool add, cudaStream_t stream) {
  touch<<<multiprocessors() * 4, 256, 0, stream>>>(range.as<unsigned>(), range.bytes() / kPage, add);
  check(cudaGetLastError(), "launch of the kernel that touches pages");
}

std::uint64_t pages_untouched(const ManagedBuffer& range, unsigned touches) {
  const DeviceCounter wrong;
  count_untouched<<<multiprocessors() * 4, 256>>>(range.as<unsigned>(), range.bytes() / kPage, touches, wrong.get());
  check(cudaGetLastError(), "launch of the kernel that counts untouched pages");
  return wrong.value();
}

// Seconds of one touch of every page. Not behind a held stream: if that gave up, the pages would be touched twice.
double seconds_of_touch(const ManagedBuffer& range, bool add, const CudaStream& stream) {
  const CudaEvent begin, end;
  begin.record(stream.get());
  launch_touch(range, add, stream.get());
  end.record(stream.get());
  stream.synchronize();
  return end.seconds_since(begin);
}

void fill_zero_on_host(const ManagedBuffer& range) {
  auto* const words = range.as<unsigned>();
  for (std::size_t i = 0; i < range.bytes() / sizeof(unsigned); ++i) words[i] = 0;
}

// On the host: the CPU has written the range, the faults bring it. Else nobody has touched it ever: the pages are
// made where the fault is, with contents that nobody promises.
void measure_first_touch(BenchmarkRun& run, std::size_t bytes, bool on_host) {
  const CudaStream stream;
  Measurement m = run.row({{"bytes", std::to_string(bytes)}, {"resident", on_host ? "host" : "none"}});
  m.bytes = static_cast<double>(bytes);
  std::uint64_t wrong = 0;
  {
    const ManagedBuffer small(kPage);  // loads the kernel
    seconds_of_touch(small, false, stream);
  }
  run.sample(m, [&] {
    const ManagedBuffer range(bytes);
    if (on_host) fill_zero_on_host(range);
    const double seconds = seconds_of_touch(range, on_host, stream);
    wrong += pages_untouched(range, 1);
    return seconds;
  });
  note_mismatches(wrong, "all pages in all samples", m);
  run.report(m);
}

std::size_t largest_range(const BenchmarkRun& run) {
  const std::size_t largest = largest_device_buffer(run, 4, kLargestManaged);
  if (largest < kSmallestManaged)
    throw NotApplicable("needs buffers of 2 MiB, may have " + std::to_string(largest) + " B.");
  return largest;
}

void managed_first_touch(BenchmarkRun& run) {
  require_device();
  require_managed_memory();
  for (const std::size_t bytes : sizes_between(kSmallestManaged, largest_range(run), 8))
    for (const bool on_host : {false, true}) {
      if (run.out_of_time()) return;
      measure_first_touch(run, bytes, on_host);
    }
}

void managed_prefetch(BenchmarkRun& run) {
  require_device();
  require_managed_memory();
  const std::size_t largest = largest_range(run);
  const ManagedBuffer managed(largest);
  CheckedRange{managed.data(), largest, false}.fill(run.settings().seed);
  const CudaStream stream;
  for (const std::size_t bytes : sizes_between(kSmallestManaged, largest, 8)) {
    if (run.out_of_time()) return;
    Measurement m = run.row({{"bytes", std::to_string(bytes)}});
    m.bytes = static_cast<double>(bytes);
    run.sample(m, [&] {
      prefetch_managed(managed, bytes, false, stream.get());
      stream.synchronize();
      return host_seconds([&] {
        prefetch_managed(managed, bytes, true, stream.get());
        stream.synchronize();
      });
    });
    CheckedRange{managed.data(), bytes, true}.verify(run.settings().seed, m);
    run.report(m);
  }
}

// A range of `share` times `room`, touched again and again, where `room` is all that the device has left.
void measure_share(BenchmarkRun& run, std::size_t room, double share) {
  const CudaStream stream;
  const ManagedBuffer range(static_cast<std::size_t>(static_cast<double>(room) * share) / kSmallestManaged *
                            kSmallestManaged);
  fill_zero_on_host(range);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", share);
  Measurement m = run.row({{"bytes", std::to_string(range.bytes())}, {"share", text.data()}});
  m.bytes = static_cast<double>(range.bytes());
  m.note = "the device's memory is taken up but for " + std::to_string(room) + " bytes, of which this is the share.";
  unsigned touches = 0;
  run.sample(m, [&] {
    ++touches;
    return seconds_of_touch(range, true, stream);
  });
  note_mismatches(pages_untouched(range, touches), std::to_string(range.bytes() / kPage) + " pages", m);
  run.report(m);
}

void managed_oversubscribed(BenchmarkRun& run) {
  require_device();
  require_managed_memory();
  if (!run.settings().oversubscribe)
    throw NotApplicable(
        "was not asked for: more managed memory than a device has free can hang one that is shared; "
        "--oversubscribe measures it.");
  const std::size_t room = std::size_t{512} << 20;
  const std::size_t free = free_device_bytes();
  if (free < 4 * room) throw NotApplicable("needs 2 GiB of free device memory, found " + std::to_string(free) + " B.");
  // Nearly everything is taken by memory that is never evicted: what is evicted stays small.
  const DeviceBuffer taken(free - room);
  for (const double share : {0.5, 1.25, 1.5}) {
    if (run.out_of_time()) return;
    measure_share(run, free_device_bytes(), share);
  }
}

const RegisterBenchmark registered_managed_first_touch{{"managed_first_touch",
                                                        "page faults of the device on managed memory, every page once",
                                                        BenchmarkPlace::cuda, 71, managed_first_touch}};
const RegisterBenchmark registered_managed_prefetch{{"managed_prefetch",
                                                     "managed memory moved from host to device, by size",
                                                     BenchmarkPlace::cuda, 71, managed_prefetch}};
const RegisterBenchmark registered_managed_oversubscribed{{"managed_oversubscribed",
                                                           "touching more managed memory than the device has left",
                                                           BenchmarkPlace::cuda, 95, managed_oversubscribed}};

}  // namespace
}  // namespace memwall
