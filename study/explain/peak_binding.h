// What makes the peak of the device's memory, and which peak waits behind it: for each kind of storage the highest that
// the others reach together, which no policy on that kind alone brings the peak below.
//
// Bytes as requested: rounding and the allocator's cache are no storage's.
#pragma once

#include <vector>

#include "traces/run/run.h"

namespace memwall {

struct PeakWithoutKind {
  StorageKind kind = StorageKind::unknown;
  Bytes at_peak = 0;                        // that this kind takes at the peak
  Bytes peak_without = 0;                   // of all other kinds
  Time time{};                              // when that is, first time
  StorageKind then = StorageKind::unknown;  // the largest of the others there
};

struct PeakBinding {
  Time time{};                   // of the peak, first time; by the host's clock, as the allocator's calls are
  Phase phase = Phase::unknown;  // of the op that the host issues then
  Bytes requested = 0;
  std::vector<PeakWithoutKind> kinds;  // that take part in the peak, the largest part first
};

// Empty where the run records no memory. REQUIRES: the run was recorded.
PeakBinding peak_binding(const Run& run);

}  // namespace memwall
