// How ranks that run one program (Trace::ranks) divide a tier of the host or of storage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/machine/machine.h"

namespace memwall {

// As many of `ranks` as have the tier in common: those behind its memory, else behind what leads there. 1 for a
// device's own memory.
std::uint32_t ranks_in_tier(const Machine& machine, std::size_t tier, std::uint32_t ranks);

}  // namespace memwall
