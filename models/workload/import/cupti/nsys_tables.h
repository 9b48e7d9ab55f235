// Names of the tables of an Nsight Systems export, and how its numbers of threads name processes.
// Internal to the importer of these files.
#pragma once

#include <cstdint>
#include <string_view>

namespace memwall::nsys {

inline constexpr std::string_view kCalls = "CUPTI_ACTIVITY_KIND_RUNTIME", kKernels = "CUPTI_ACTIVITY_KIND_KERNEL",
                                  kCopies = "CUPTI_ACTIVITY_KIND_MEMCPY", kMemsets = "CUPTI_ACTIVITY_KIND_MEMSET",
                                  kGraphs = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                                  kWaits = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                                  kEvents = "CUPTI_ACTIVITY_KIND_CUDA_EVENT", kRanges = "NVTX_EVENTS",
                                  kMemory = "CUDA_GPU_MEMORY_USAGE_EVENTS", kGpus = "TARGET_INFO_GPU",
                                  kCudaDevices = "TARGET_INFO_CUDA_DEVICE", kStrings = "StringIds";

// A globalTid: hardware, machine, process (24 bits), thread (24 bits). A globalPid has no thread.
inline constexpr std::int64_t kThreadBits = 0xffffff;
inline std::int64_t process_of(std::int64_t global_thread) { return global_thread & ~kThreadBits; }
inline std::int64_t number_of(std::int64_t process) { return (process >> 24) & kThreadBits; }

}  // namespace memwall::nsys
