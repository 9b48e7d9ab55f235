// Everything that `memwall memory` finds out about one device of a snapshot, before any of it is printed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/workload/memory/memory_report.h"
#include "models/workload/memory/recording_replay.h"
#include "models/workload/memory/settings_search.h"
#include "study/watch.h"

namespace memwall {

struct MemoryQuestion {
  std::filesystem::path snapshot;
  std::optional<int> device;            // default: the one that reserved most
  std::optional<std::string> settings;  // of PYTORCH_ALLOC_CONF; none = as recorded
  std::string allocator = "pytorch";
  std::optional<Bytes> capacity;      // that may be reserved
  std::optional<Bytes> device_total;  // default: the capacity
  bool search = false;  // settings that let it run; asked for or not where one may and the recording is short
  std::size_t limit = 15;  // source lines, holes, blocks
};

// A request that the recorded program was refused.
struct RecordedOutOfMemory {
  std::uint32_t event = 0;
  Bytes request = 0, device_free = 0;  // as the file says
  // The device had room for it: a limit of the process was reached, or another process had that memory just before.
  bool despite_device = false;
  MemoryLevels at;                     // replayed
  Bytes largest_free = 0;              // largest free block of any pool
  LiveSet live;
};

// A stretch of events in one phase of a step.
struct MemoryStretch {
  std::string name;  // "step 2 backward"
  std::uint32_t begin = 0, end = 0;
  MemoryLevels highest;  // each at its own instant within the stretch
  MemoryLevels last;
};

struct MemoryStudy {
  MemoryRecording recording;
  std::size_t device = 0;  // index into recording.devices
  StartState start;
  RecordingReplay recorded;              // as it was
  std::optional<RecordingReplay> other;  // under the settings, allocator or capacity that were asked for
  std::string asked_for;                 // these, in words
  AllocationTable table;
  LiveSet peak;
  Fragmentation at_peak, at_end;  // as it was
  LeakReport leaks;
  std::vector<LateFree> held;
  std::vector<RecordedOutOfMemory> refused;
  std::vector<MemoryStretch> stretches;  // of the replay that was asked for
  std::optional<Bytes> capacity;
  bool capacity_from_refusal = false;  // not given: what the recording had when it ran out of memory
  std::vector<SearchRow> search;

  const DeviceRecording& of_device() const { return recording.devices[device]; }
  const RecordingReplay& asked() const { return other ? *other : recorded; }
};

// That the process could still have obtained, as far as is known.
Bytes left_to_obtain(const RecordedOutOfMemory& refused);
// What the device lacked of the requests that were refused as it was recorded: 0 = none was; none = not known.
std::optional<Bytes> recorded_missing(const MemoryStudy& study);
// A cache that had enough, in pieces too small.
bool is_fragmentation(const RecordedOutOfMemory& refused);
// Memory was missing, though not more than an allocator can make up for: what is requested at once would fit.
bool settings_may_help(const MemoryStudy& study);

// Everything that a reader should know beside the figures: of the file, the replays, the tables.
std::vector<std::string> study_notes(const MemoryStudy& study);

// Throws InputError (the file), UsageError (a device, setting or allocator that is not there).
// `watch` sees the reading and the search; null = nobody.
MemoryStudy study_memory(const MemoryQuestion& question, Watch* watch = nullptr);

}  // namespace memwall
