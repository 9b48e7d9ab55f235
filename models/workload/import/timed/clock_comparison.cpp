#include "models/workload/import/timed/clock_comparison.h"

#include <algorithm>

#include "models/workload/import/timed/kernel_properties.h"
#include "sim/quantile.h"

namespace memwall {

ClockComparison::ClockComparison(const JoinedCapture& joined, ImportSummary& summary) : j_(joined), summary_(summary) {
  one_device_ = std::ranges::all_of(
      j_.streams, [&](const JoinedStream& s) { return s.device_index == j_.streams.front().device_index; });
}

void ClockComparison::add_start(std::uint32_t device_op) {
  const std::uint32_t call = j_.device_ops[device_op].call;
  if (call == kNoIndex) return;
  ++summary_.launched;
  const Duration early = j_.capture->calls[call].start - j_.capture->device_ops[device_op].start;
  if (early <= kClockNoise) return;
  ++summary_.before_launch;
  before_launch_.push_back(early);
  if (early <= summary_.most_before_launch) return;
  summary_.most_before_launch = early;
  summary_.most_before = device_op;
}

void ClockComparison::add_return(std::uint32_t call, Time awaited_end) {
  if (awaited_end == Time{} || !is_certain(call)) return;
  ++summary_.returns;
  const Duration early = awaited_end - j_.capture->calls[call].end();
  if (early <= kClockNoise) return;
  ++summary_.early_returns;
  early_returns_.push_back(early);
  if (early <= summary_.most_early_return) return;
  summary_.most_early_return = early;
  summary_.most_early = j_.capture->calls[call].start;
  summary_.most_early_name = j_.capture->calls[call].name;
}

// cudaMemcpy from pageable host memory may return before the copy ends, one to it only behind that ("API
// synchronization behavior" in the documentation of the CUDA runtime).
bool ClockComparison::is_certain(std::uint32_t call) const {
  const JoinedCall& joined = j_.calls[call];
  switch (joined.wait_for) {
    case WaitFor::own_op: {
      const CapturedDeviceOp& copy = j_.capture->device_ops[j_.launched[joined.first_launched]];
      return copy_direction(j_.capture->text(copy.name)).to_host;
    }
    case WaitFor::stream:
      return joined.stream_is_stated || j_.streams.size() == 1;
    case WaitFor::event:
      return true;
    default:
      return one_device_;
  }
}

void ClockComparison::finish() {
  if (!before_launch_.empty()) summary_.median_before_launch = upper_median(before_launch_);
  if (!early_returns_.empty()) summary_.median_early_return = upper_median(early_returns_);
}

}  // namespace memwall
