// What CUPTI and NVTX recorded of a CUDA program, record by record, before anyone concludes anything from it.
//
// Of a .mwi file (inject_reader.h), of an Nsight Systems export (nsys_records.h), and of ROCm's profiles, whose records
// are of the same kinds (models/workload/import/rocm). Times are nanoseconds of CUPTI's
// clock, 0 where it did not know.
// Internal to the importers of CUPTI records.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/trace.h"
#include "sim/units.h"

namespace memwall {

// A number that a record leaves open.
inline constexpr std::uint32_t kNotSaid = 0xffffffff;

enum class CuptiWork : std::uint8_t { kernel, copy, memset, graph };

// Something that ran on a device.
struct CuptiDeviceWork {
  CuptiWork work = CuptiWork::kernel;
  std::uint8_t copy_kind = 0, source_kind = 0, destination_kind = 0;  // as CUPTI numbers them; a memset: destination
  StringId name = 0;                                                  // kernels
  std::int64_t start = 0, end = 0;
  Bytes bytes = -1;
  std::uint32_t device = 0, context = 0, stream = 0, correlation = 0, graph = 0;
  double blocks = 0;                                            // of the grid
  std::uint32_t threads = 0, registers = 0, shared_memory = 0;  // per block, thread, block
};

struct CuptiSynchronization {
  std::int64_t start = 0, end = 0;
  std::uint64_t event_sync = 0;
  std::uint32_t type = 0, correlation = 0, context = 0, stream = 0, event = 0;
};

struct CuptiEvent {
  std::uint64_t event_sync = 0;
  std::uint32_t correlation = 0, context = 0, stream = 0, event = 0;
};

struct CuptiMemory {
  std::int64_t time = 0;
  std::uint64_t address = 0;
  Bytes size = 0;
  bool from_pool = false;
  std::uint32_t operation = 0, kind = 0, correlation = 0, device = 0;
};

struct CuptiCall {
  std::int64_t start = 0, end = 0;
  StringId name = 0;
  std::uint32_t domain = 0, callback = 0, thread = 0, correlation = 0;
};

struct NvtxMarker {
  std::int64_t time = 0;
  StringId name = 0, domain = 0;
  std::uint32_t id = 0, flags = 0, thread = 0;
};

struct CuptiDevice {
  std::uint32_t id = 0;
  StringId name = 0;
  Bytes memory = 0;
  std::uint32_t multiprocessors = 0, threads = 0, blocks = 0, registers = 0, shared_memory = 0;  // per multiprocessor
  std::uint32_t capability = 0;                                                                  // major * 10 + minor
};

struct CuptiContext {
  std::uint32_t id = 0, device = 0;
};

struct RefusedActivity {
  StringId activity = 0, reason = 0;
};

// What cannot become part of a trace is counted.
struct CuptiCounts {
  std::uint64_t records = 0, unknown_kinds = 0, pools = 0;
  std::uint64_t overheads = 0, unified = 0, faults = 0;
  std::uint64_t overhead_ns = 0, to_device_bytes = 0, to_host_bytes = 0;  // the last two: migrated
  std::uint64_t dropped = 0, refused_buffers = 0, over_limit = 0, unwritten = 0, lost_names = 0;
  bool ended = false;  // the program ended by itself
  bool cut = false;    // inside a record
};

// How sentences name what recorded a program, which need not be NVIDIA's.
struct RecorderWords {
  std::string_view ranges = "NVTX";        // what a person's ranges belong to
  std::string_view interface = "CUDA";     // whose allocations those are that are recorded
  std::string_view driver = "the driver";  // what the runtime calls inside its own calls
};

struct CuptiRecords {
  std::filesystem::path path;
  std::string recorder;  // who recorded it, in sentences; "" = libmemwall_inject
  RecorderWords words;
  StringTable strings;
  std::vector<CuptiDeviceWork> work;
  std::vector<CuptiSynchronization> synchronizations;
  std::vector<CuptiEvent> events;
  std::vector<CuptiMemory> memory;
  std::vector<CuptiCall> calls;
  std::vector<NvtxMarker> markers;
  std::vector<CuptiDevice> devices;
  std::vector<CuptiContext> contexts;
  std::vector<RefusedActivity> refusals;
  std::uint32_t process = 0;
  StringId executable = 0, command_line = 0;
  std::int32_t driver_version = 0, runtime_version = 0;
  std::uint32_t cupti_version = 0;
  CuptiCounts counts;
};

}  // namespace memwall
