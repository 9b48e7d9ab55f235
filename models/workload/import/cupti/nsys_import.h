// Turns an SQLite export of Nsight Systems into a trace, by the rules for other CUPTI records (cupti_import.h).
//
// `nsys export --type sqlite` writes what CUPTI and NVTX said, one table per kind of record; tables are missing where
// there was nothing to write, and columns differ between versions (schemas 2.x to 3.27 were looked at), so both are
// looked up by name:
//   CUPTI_ACTIVITY_KIND_RUNTIME          calls of the runtime and the driver
//   CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY, _MEMSET, _GRAPH_TRACE   device work
//   CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, _CUDA_EVENT             waits, and what they wait for
//   NVTX_EVENTS                          ranges; those of torch.autograd.profiler.emit_nvtx are operators
//   CUDA_GPU_MEMORY_USAGE_EVENTS         allocations of cudaMalloc and its kin (--cuda-memory-usage)
//   TARGET_INFO_GPU, TARGET_INFO_CUDA_DEVICE   the GPUs
//   StringIds                            names
// A report may hold several processes, as that of torchrun does: captured_processes.h says which one is imported.
//
// Source of the format: docs.nvidia.com/nsight-systems, "Exporter SQLite Schema", and files of several versions.
#pragma once

#include <cstdint>
#include <optional>

#include "models/workload/import/bytes/file_head.h"
#include "models/workload/import/cupti/cupti_import.h"

namespace memwall {

bool recognizes_nsys(const FileHead& head);

// Throws InputError naming file, table, found and expected; UsageError where no range has the given name,
// or there is no such rank.
CuptiCapture read_nsys(const std::filesystem::path& path, const std::string& step_range = "",
                       std::optional<std::uint32_t> rank = {});

ImportedStep import_nsys(const std::filesystem::path& path, const ImportSettings& settings = {});

}  // namespace memwall
