// What was measured of a step, held against what is simulated of it as it is, without a plan.
#pragma once

#include <filesystem>
#include <string>

#include "study/study.h"

namespace memwall {

// 0 = the file does not say.
struct MeasuredStep {
  std::string kind;                             // of the file: "memory snapshot"
  Bytes peak_reserved = 0, peak_allocated = 0;  // of the GPU that reserved most, by PyTorch's allocator
  Duration step_time{};                         // mean of the steps
  std::size_t steps = 0;
};

struct Observation {
  MeasuredStep measured, simulated;

  // How much more memory was measured than is simulated: reserved where both are known, else allocated; below 0: less.
  Bytes more_memory() const;
  double time_ratio() const;  // measured by simulated; 1 where no time was measured
};

// A memory snapshot, or a torch.profiler trace with steps or memory events. Throws InputError where it is neither or is
// damaged, UsageError where it says nothing of memory and time. `watch`: null = nobody.
MeasuredStep read_measured_step(const std::filesystem::path& file, Watch* watch = nullptr);

// Throws as these do.
Observation observe(Study& study, const Scenario& scenario, const std::filesystem::path& file, Watch* watch = nullptr);

}  // namespace memwall
