// Page-locked host memory without a GPU's driver: what the operating system takes for it. On CUDA cudaHostAlloc is
// measured under the same name (bench/cuda/device_allocation.cpp); rows say by `method` what was called.
#include <algorithm>
#include <cstddef>

#include "validate/bench/benchmark.h"
#include "validate/bench/page_locking.h"
#include "validate/replay/host_computer.h"

namespace memwall {
namespace {

// Sizes from a page to 1 GiB by powers of four.
std::vector<std::size_t> allocation_sizes_up_to(std::size_t largest) {
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = kLockedPage; bytes <= std::min(largest, std::size_t{1} << 30); bytes *= 4)
    sizes.push_back(bytes);
  if (sizes.empty()) sizes.push_back(kLockedPage);
  return sizes;
}

void host_alloc_pinned(BenchmarkRun& run) {
  for (const std::size_t bytes : allocation_sizes_up_to(run.settings().largest_buffer)) {
    if (run.out_of_time()) return;
    if (static_cast<Bytes>(bytes) > available_memory() / 2) return;
    const bool locked = can_lock(bytes);
    Measurement m =
        run.row({{"bytes", std::to_string(bytes)}, {"method", locked ? "mmap_and_mlock" : "mmap_and_touch"}});
    if (!locked) m.note = "the system refuses to lock this much memory (RLIMIT_MEMLOCK): pages are touched, not locked";
    run.sample(m, [&] { return seconds_of_allocation(bytes, locked); });
    run.report(m);
  }
}

const RegisterBenchmark registered_host_alloc_pinned{
    {"host_alloc_pinned", "page-locked memory of the operating system, by size: mmap and mlock, else touched pages",
     BenchmarkPlace::computer, 62, host_alloc_pinned}};

}  // namespace
}  // namespace memwall
