// How long a step takes where its ranks share only a part of what ranks of a host share.
#pragma once

#include "sim/units.h"

namespace memwall {

// Mean step times with one kind of resource shared as it is and every other one each rank's own (study/alone_step.h).
// 0 = not simulated.
struct ContendedSteps {
  Duration links{};            // ways to the host: PCIe uplinks, NVLink ports
  Duration memory_channels{};  // the host's DRAM
  Duration cores{};            // of the host
  Duration storage{};          // ways to tiers of storage, and their drives
  bool operator==(const ContendedSteps&) const = default;
};

}  // namespace memwall
