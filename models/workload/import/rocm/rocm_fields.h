// What the readers of rocpd databases and of rocprofv3's JSON have in common: bounds, and the description of a GPU.
// Internal to the importer of ROCm's profiles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "models/workload/import/rocm/rocm_profile.h"
#include "sim/error.h"

namespace memwall {

// HIP calls it "stream", the launch of a module's kernel "hStream".
inline bool is_stream_argument(std::string_view name) { return name == "stream" || name == "hStream"; }

// Nanoseconds that a record can have: 0 stands for a work item that never began.
inline bool is_rocm_span(std::int64_t start, std::int64_t end) {
  return start > 0 && end >= start && end < std::int64_t{1} << 61;
}

// -1 where it cannot be a number of bytes.
inline Bytes rocm_bytes(std::int64_t bytes) { return bytes < 0 || bytes > Bytes{1} << 44 ? -1 : bytes; }

inline std::uint32_t rocm_thread(std::int64_t id) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(id, 0, 0xfffffffe));
}

template <class Record>
Record& rocm_add(std::vector<Record>& list, const std::filesystem::path& path) {
  if (list.size() >= 0x7fffffff) throw InputError(path.string() + ": found more than 2 billion records of a kind.");
  return list.emplace_back();
}

// Adds what the description of an agent, JSON as rocprofiler-sdk writes it, says: cu_count, and of mem_banks those of
// the GPU itself (heap_type 1 and 2, HSA_HEAPTYPE_FRAME_BUFFER_PUBLIC and _PRIVATE of the kernel driver). What it does
// not say stays.
void describe_rocm_agent(std::string_view json, RocmAgent& agent);

}  // namespace memwall
