// Reads what rocprofv3 writes with --output-format json: {"rocprofiler-sdk-tool": [a process, ...]}.
//
// Of a process: metadata (pid, command), agents, strings (names of kinds and operations, messages of roctx by
// correlation id), kernel_symbols, and buffer_records: kernel_dispatch, memory_copy, hip_api, hsa_api, rccl_api,
// marker_api, memory_allocation, scratch_memory. Arguments of calls are there in newer files only.
// Source: rocprofiler-sdk, lib/output/generateJSON.cpp and include/rocprofiler-sdk/cxx/serialization/save.hpp.
// Internal to the importer of ROCm's profiles.
#pragma once

#include <filesystem>

#include "models/workload/import/rocm/rocm_profile.h"

namespace memwall {

// Throws InputError naming file, found and expected. A process of more than JsonSource::kLongestPiece is refused.
RocmProfile read_rocprof_json(const std::filesystem::path& path);

}  // namespace memwall
