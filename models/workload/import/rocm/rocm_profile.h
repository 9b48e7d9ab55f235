// What rocprofv3 recorded of the processes of a file, record by record, before anyone concludes anything from it.
//
// Of a rocpd database (rocpd_reader.h) and of its JSON (rocprof_json.h). Times are nanoseconds of the file's clock.
// Internal to the importer of ROCm's profiles.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/trace.h"
#include "sim/units.h"

namespace memwall {

// By the name of the record's kind: HIP_RUNTIME_API, HSA_CORE_API, RCCL_API, MARKER_CORE_RANGE_API, ... (EXT or not).
enum class RocmDomain : std::uint8_t { other, hip, hsa, rccl, marker };
RocmDomain rocm_domain(std::string_view kind);

struct RocmProcess {
  std::int64_t id = 0;  // as the operating system numbered it
  std::string command;
};

// A processor that HSA knows: a CPU, or a GPU (of an MI250: one of its two dies).
struct RocmAgent {
  std::uint32_t process = 0;  // index into RocmProfile::processes, here and below
  std::int64_t id = 0;        // by which records name it
  bool gpu = false;
  std::int64_t ordinal = -1;  // among the GPUs; -1 = not said
  std::string name;           // "AMD Instinct MI300X", else "gfx942"
  std::uint32_t compute_units = 0;
  Bytes memory = 0;  // 0 = not said
};

struct RocmCall {
  std::uint32_t process = 0;
  RocmDomain domain = RocmDomain::other;
  std::int64_t start = 0, end = 0;
  StringId name = 0;               // of a marker: its message
  StringId stream = 0, event = 0;  // arguments of these names, as the file prints them; 0 = not recorded
  std::uint32_t thread = 0;
  std::int64_t correlation = 0;  // 0 = none, here and below
};

struct RocmWork {
  std::uint32_t process = 0;
  bool copy = false;  // else a kernel
  std::int64_t start = 0, end = 0;
  StringId name = 0;
  std::int64_t agent = -1, source_agent = -1, destination_agent = -1;  // the last two: of copies, which have no first
  std::int64_t stream = 0, queue = 0;                                  // HIP's and HSA's numbers; of copies no queue
  std::int64_t correlation = 0;
  Bytes bytes = -1;
  double work_items[3] = {};                      // of the grid, per dimension
  std::uint32_t group_items[3] = {};              // of a workgroup
  std::uint32_t registers = 0, group_memory = 0;  // vector registers of a lane; LDS of a workgroup, bytes
};

struct RocmAllocation {
  std::uint32_t process = 0;
  bool release = false;
  std::int64_t time = 0;
  std::int64_t agent = 0;  // not of releases
  std::uint64_t address = 0;
  Bytes size = 0;  // of releases mostly 0
  std::int64_t correlation = 0, ancestor = 0;
};

struct RocmProfile {
  std::filesystem::path path;
  std::string writer;  // "rocprofv3 (rocpd)"
  StringTable strings;
  std::vector<RocmProcess> processes;
  std::vector<RocmAgent> agents;
  std::vector<RocmCall> calls;
  std::vector<RocmWork> work;
  std::vector<RocmAllocation> allocations;
  // Not kept: instants, rows without possible times, scratch memory of kernels, calls of other libraries.
  std::uint64_t instants = 0, without_times = 0, scratch = 0, other_calls = 0;
};

}  // namespace memwall
