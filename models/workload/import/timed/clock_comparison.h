// Do the clocks of host and GPU agree? No work starts before the call that launches it, and no call that waits for work
// returns before that ends: where it seems so, the GPU's clock is behind the host's, or ahead of it.
// Internal to the importers of timed captures.
#pragma once

#include "models/workload/import/timed/joined_capture.h"
#include "models/workload/import/timed/timed_import.h"

namespace memwall {

// Host and GPU on one clock, as profilers convert them: in 13 captures (V100 to H100, MI250; 2021 to 2024) none of
// 39,800 pieces of work starts before its launch does, and none of 115 calls returns before what it waits for ends.
inline constexpr Duration kClockNoise = microseconds(10);

class ClockComparison {
 public:
  // Both outlive it.
  ClockComparison(const JoinedCapture& joined, ImportSummary& summary);

  // Of device work that was launched in the file.
  void add_start(std::uint32_t device_op);
  // Of a call that waits for work which ends at `awaited_end`. Passed over where the file does not say for certain what
  // the call waits for, and where CUDA lets it return earlier (a copy from pageable memory).
  void add_return(std::uint32_t call, Time awaited_end);
  // Fills the summary's medians.
  void finish();

 private:
  bool is_certain(std::uint32_t call) const;

  const JoinedCapture& j_;
  ImportSummary& summary_;
  bool one_device_ = true;
  std::vector<Duration> before_launch_, early_returns_;  // by how much
};

}  // namespace memwall
