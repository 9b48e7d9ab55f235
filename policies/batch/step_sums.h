// What a step of another size would hold and do, as far as later layers can count it.
#pragma once

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "sim/trace/trace.h"

namespace memwall {

// Sums that later layers add up without a look: 64 PiB, 10^20 FLOPs, 106 days.
constexpr double kMostBytes = 0x1p56, kMostFlops = 1e20, kMostPicoseconds = 9e18;

struct StepSums {
  double bytes = 0, traffic = 0, flops = 0, picoseconds = 0;

  void add(const Storage& storage) { bytes += static_cast<double>(storage.bytes); }
  void add(const Op& op) {
    traffic += static_cast<double>(op.bytes);
    flops += op.flops;
    picoseconds += static_cast<double>(op.duration.count());
  }
  // Is `factor` times this within what can be counted?
  bool countable(double factor = 1) const {
    return std::max(bytes, traffic) * factor <= kMostBytes && flops * factor <= kMostFlops &&
           picoseconds * factor <= kMostPicoseconds;
  }
  // The end of a refusal: "would be ...".
  std::string refusal(double factor = 1) const {
    return fmt::format(
        "would be {:.3g} bytes of storages, {:.3g} bytes of traffic and {:.3g} FLOPs; expected at most {:.3g} bytes "
        "and {:.3g} FLOPs.",
        bytes * factor, traffic * factor, flops * factor, kMostBytes, kMostFlops);
  }
};

}  // namespace memwall
