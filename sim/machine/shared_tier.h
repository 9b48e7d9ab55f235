// How ranks that run one program (Trace::ranks) divide a tier of the host or of storage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/machine/machine.h"

namespace memwall {

// GPUs that have the tier in common: as it says, else those behind its memory or behind what leads there, else those of
// the host. 1 for a device's own memory, 0 where nothing says it: then all ranks of a trace have.
std::uint32_t sharers_of_tier(const Machine& machine, std::size_t tier);

// As many of `ranks` as have the tier in common: those behind its memory, else behind what leads there. 1 for a
// device's own memory.
std::uint32_t ranks_in_tier(const Machine& machine, std::size_t tier, std::uint32_t ranks);

}  // namespace memwall
