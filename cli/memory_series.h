// The memory series of whatever a user has: a memory snapshot, a run file, a log of samples; told apart by content.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/workload/forecast/memory_forecast.h"

namespace memwall {

struct JobMemory {
  std::string name;                // of the file, without folders
  MemorySeries series;             // its period is set where the file says where steps begin
  bool steps_told = true;          // false: whatever period is found may be shorter than a training step
  double seconds_per_step = 0;     // 0 = unknown, or the period still has to be found
  std::optional<double> gpu_busy;  // share of a step in which a kernel runs; a run file alone knows it
  std::vector<std::string> notes;  // what the bytes are, how steps were told
  std::string counted = "the memory used";  // what the bytes are, in a few words
  Bytes highest = 0;               // of the bytes, in the whole file
  // What the allocator's cache and rounding come on top of has more than its peak to fit: what was reserved, as far as
  // the file says (0 = it does not), and where. Of a log nothing comes on top.
  bool cache_on_top = false;
  Bytes reserved = 0;
  std::string reserved_where{};
  Bytes missing = 0;  // of a snapshot whose bytes fit: what its allocator, replayed in the capacity, lacks there
};

// `period` 0 = as the file says, or to be found; `device` of a snapshot: as snapshot_device takes it; `capacity`: to
// replay a snapshot in, 0 = none.
// Throws InputError, and UsageError for a period where the file has steps of its own, for a device that is not there
// and for a trace, which has no memory before it is run.
JobMemory read_job_memory(const std::filesystem::path& path, std::size_t period, std::optional<int> device = {},
                          Bytes capacity = 0);

// Seconds of one step, from the period that was found. 0 = unknown.
double seconds_per_step(const JobMemory& job, const MemoryForecast& forecast);

}  // namespace memwall
