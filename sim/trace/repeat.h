// Runs a step several times in a row: what one iteration leaves behind, the next
// finds (gradients, caches, run-ahead of the host).
#pragma once

#include <cstdint>

#include "sim/trace/trace.h"

namespace memwall {

// The whole host program `times` times. A preexisting storage that the program frees is, in later
// rounds, one that the round before left behind, of the same size (largest first, oldest first);
// where none is left, the free is dropped and noted. REQUIRES: times >= 1.
Trace repeated(const Trace& trace, std::uint32_t times);

}  // namespace memwall
