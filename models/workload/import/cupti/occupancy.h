// How many threads of a kernel a multiprocessor holds at once.
// Internal to the importers of CUPTI records.
#pragma once

#include "models/workload/import/cupti/cupti_records.h"

namespace memwall {

// In percent of the multiprocessor's threads, at most what the grid fills: the smallest of the limits by threads,
// blocks, registers and shared memory, as NVIDIA's occupancy calculator has them (CUDA C++ Programming Guide,
// "Occupancy calculator"): registers are given to warps in units of 256, shared memory in units of 128 bytes (256
// before compute capability 7.0), and since 8.0 the system keeps 1 KiB of it per block. 0 where the device or the
// kernel does not say enough.
double occupancy_percent(const CuptiDevice& device, const CuptiDeviceWork& kernel);

}  // namespace memwall
