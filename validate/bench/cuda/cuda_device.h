// The device that the CUDA benchmarks run on, the first visible one, and the sizes that they go through.
#pragma once

#include <cstddef>
#include <vector>

#include "validate/bench/benchmark.h"

namespace memwall {

// Throws NotApplicable with what is missing where no CUDA device can be used. Every CUDA benchmark begins with it.
void require_device();

// REQUIRES, for all that follow: require_device() returned.
unsigned multiprocessors();
std::size_t free_device_bytes();
// The largest power of two that is at most `most` and the settings' largest buffer, and of which `buffers`
// fit into three quarters of what the device has free. Throws NotApplicable if that is less than 1 MiB.
std::size_t largest_device_buffer(const BenchmarkRun& run, unsigned buffers, std::size_t most);

// 4 KiB to 1 GiB by powers of four, and 2 MiB: no copy is larger than `largest`.
std::vector<std::size_t> copy_sizes(std::size_t largest);
// Powers of `factor` times `smallest`, none above `largest`.
std::vector<std::size_t> sizes_between(std::size_t smallest, std::size_t largest, std::size_t factor);

}  // namespace memwall
