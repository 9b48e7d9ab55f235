// What a timed capture says (Kineto, Nsight Systems, libmemwall_inject), before anyone concludes anything from it.
//
// Modelled on the Chrome trace that torch.profiler writes, 2021 to now: category names of all vintages are unified,
// string and integer thread ids too, and every time is a whole number of picoseconds since the first event that is
// kept. Nothing is joined, corrected or dropped here except spans of Python functions that are not modules.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "models/workload/import/timed/captured_launches.h"
#include "sim/trace/trace.h"
#include "sim/units.h"

namespace memwall {

inline constexpr std::uint32_t kNoIndex = 0xffffffff;

struct CapturedThread {
  std::int64_t process = 0, id = 0;  // as the operating system numbered them; id may be negative
};

// What a range of a person's own naming stands for, where a reader knows.
enum class RangeMeaning : std::uint8_t { none, step, forward, backward, optimizer };

// What PyTorch says of a collective beside its message (torch/csrc/profiler/util.cpp, saveNcclMeta; 2024 and later): at
// the operator record_param_comms, and at the kernel that it launched.
struct CapturedCommunication {
  StringId group_name = 0;       // "Process Group Name"
  StringId group_ranks = 0;      // "Process Group Ranks": "[0, 1]"; of more than 30 with "..." between
  StringId collective = 0;       // "Collective name": "allreduce", "_allgather_base", "all_to_allv", ...
  StringId message_type = 0;     // "dtype"
  std::int64_t elements = -1;    // "In msg nelems"; -1: absent, here and below
  std::int64_t group_size = -1;  // "Group size"
  std::int64_t sequence = -1;    // "Seq": counts the group's collectives, equal on all its ranks
  std::int64_t source = -1;      // "Src Rank" of a receive, "Dst Rank" of a send: numbers in the job
  std::int64_t destination = -1;
};

// What a collective's kernel itself says of its message (2024 and later).
struct CapturedMessage {
  std::int64_t elements = -1;    // "In msg nelems"
  std::int64_t group_size = -1;  // "Group size"
  StringId type = 0;             // "dtype"
};

// Of these records a large capture holds millions: fields stand by size, without gaps.

// A framework operator (cpu_op, Operator) or an annotated range (user_annotation).
struct CapturedOperator {
  Time start{};
  Duration duration{};
  std::int64_t external_id = -1;              // -1: absent, here and below
  std::int64_t sequence_number = -1;          // joins a backward function with its forward operator
  StringId name = 0;                          // in TimedCapture::strings
  std::uint32_t parent = kNoIndex;            // innermost operator of the same thread around this one
  std::int32_t forward_thread = -1;           // "Fwd thread id"; above 0 on backward operators
  StringId input_dims = 0;                    // JSON text of "Input Dims", "" if absent
  StringId input_types = 0;                   // JSON text of "Input type"
  StringId concrete_inputs = 0;               // JSON text of "Concrete Inputs"
  std::uint32_t communication = kNoIndex;     // index into TimedCapture::communications
  std::uint16_t thread = 0;                   // index into TimedCapture::threads
  bool annotation = false;                    // a range that a person or the profiler named
  RangeMeaning meaning = RangeMeaning::none;  // beyond the names that PyTorch gives
  Time end() const { return start + duration; }
};
static_assert(sizeof(CapturedOperator) == 64);

// A call into the CUDA or HIP runtime or driver.
struct CapturedCall {
  Time start{};
  Duration duration{};
  std::int64_t correlation = -1;
  Bytes size = -1;  // ROCm: what a copying call was asked to copy
  StringId name = 0;
  std::int32_t callback = -1;  // CUPTI's cbid; tells what an `INVALID` record was
  std::uint16_t thread = 0;
  Time end() const { return start + duration; }
};
static_assert(sizeof(CapturedCall) == 48);

enum class DeviceWork : std::uint8_t { kernel, copy, memset };

// Something that ran on a device.
struct CapturedDeviceOp {
  Time start{};
  Duration duration{};
  std::int64_t stream = 0;
  std::int64_t correlation = -1;
  Bytes bytes = -1;  // of copies and memsets; -1 = not recorded
  StringId name = 0;
  std::int32_t device = 0;
  std::uint32_t launch = 0;                // index into TimedCapture::launches
  std::uint32_t message = kNoIndex;        // index into TimedCapture::messages
  std::uint32_t communication = kNoIndex;  // index into TimedCapture::communications
  DeviceWork work = DeviceWork::kernel;
  Time end() const { return start + duration; }
};
static_assert(sizeof(CapturedDeviceOp) == 64);

// An allocation or a free, at the host time at which the allocator was asked.
struct CapturedMemory {
  Time time{};
  std::uint64_t address = 0;
  Bytes bytes = 0;             // above 0 an allocation, below 0 a free; as rounded by the allocator
  Bytes total_allocated = -1;  // after the event; -1 = not recorded
  Bytes total_reserved = -1;
  std::uint16_t thread = 0;
  std::int16_t device_type = 0;  // c10::DeviceType: 0 CPU, 1 CUDA, 6 HIP
  std::int16_t device = -1;
  bool has_address = false;  // files of 2021 have none
  bool on_device() const { return device_type == 1 || device_type == 6; }
};
static_assert(sizeof(CapturedMemory) == 48);

// A row about synchronization that CUPTI adds in newer files.
enum class SyncKind : std::uint8_t { stream, context, event, stream_wait_event };
struct CapturedSync {
  SyncKind kind = SyncKind::stream;
  Time start{};
  Duration duration{};
  std::int32_t device = 0;
  std::int64_t stream = -1;       // that waits
  std::int64_t correlation = -1;  // of the runtime call
  std::int64_t awaited_stream = -1;
  std::int64_t record_correlation = -1;  // of the cudaEventRecord call
};

// A span of a torch.nn.Module's forward, from Python stacks, or an annotation "nn.Module: NAME".
struct CapturedModule {
  StringId name = 0;  // "Conv2d_0"
  Time start{};
  Duration duration{};
  std::uint16_t thread = 0;
  std::uint32_t parent = kNoIndex;  // innermost enclosing module span of the same thread
  Time end() const { return start + duration; }
};

struct CapturedDevice {
  std::int64_t id = 0;
  std::string name;
  Bytes memory = 0;
  std::uint32_t multiprocessors = 0;
  std::uint32_t threads_per_multiprocessor = 2048;
  std::uint32_t registers_per_multiprocessor = 65536;
};

// Owns its strings. Vectors are sorted by start; at equal starts, spans that can nest by length
// (longest first), calls and device work by correlation, then by their order in the file. Memory
// events are sorted by time, then by their order in the file.
struct TimedCapture {
  std::filesystem::path path;  // for messages and notes
  StringTable strings;
  std::vector<CapturedThread> threads;
  std::vector<CapturedOperator> operators;
  std::vector<CapturedCall> calls;
  std::vector<CapturedDeviceOp> device_ops;
  std::vector<CapturedMemory> memory;
  std::vector<CapturedSync> syncs;
  std::vector<CapturedModule> modules;
  std::vector<CapturedDevice> devices;
  std::vector<CapturedCommunication> communications;
  std::vector<CapturedMessage> messages;
  CapturedLaunches launches;
  std::map<std::string, std::uint64_t> events_by_category;  // as the file names them; "" for none
  std::int64_t first_event_ns = 0;                          // what was subtracted from every time
  std::int64_t base_time_ns = 0;    // what the writer had subtracted before that (2024 and later)
  std::int64_t schema_version = 0;  // 0 = absent
  std::int64_t rank = -1, world_size = -1;
  std::vector<ProcessGroup> process_groups;  // that the file lists with all their ranks ("pg_config")
  bool profiled_memory = false;              // the file says that it profiled memory, or has such events

  const std::string& text(StringId id) const { return strings[id]; }
  CapturedMessage message(const CapturedDeviceOp& op) const {
    return op.message == kNoIndex ? CapturedMessage{} : messages[op.message];
  }
};

}  // namespace memwall
