// A budget of device memory as it was given: a size, or a share of a memory that is known once the step is.
#pragma once

#include <algorithm>

#include "sim/units.h"

namespace memwall {

// Less is a unit forgotten: PyTorch's allocator asks the device for 2 MiB at least.
inline constexpr Bytes kLeastBudget = MiB(1);

struct GivenBudget {
  Bytes bytes = 0;
  double share = 0;  // of `whole`, where bytes are 0

  bool is_given() const { return bytes > 0 || share > 0; }
  // In bytes, at least 1; where nothing was given, `whole`. REQUIRES: bytes >= 0, share >= 0.
  Bytes of(Bytes whole) const {
    if (bytes > 0) return bytes;
    if (share == 0) return whole;
    return std::max<Bytes>(1, static_cast<Bytes>(static_cast<double>(whole) * share));
  }
};

}  // namespace memwall
