// Sound traces of no meaning: every kind of op, every field in use, from a seed.
// For what must hold of any trace (files, scaling, rewriters), not for timing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/trace/trace.h"

namespace memwall {

// The same seed and size give the same trace; check() finds nothing in it. About `ops` ops.
Trace random_trace(std::uint64_t seed, std::size_t ops);

}  // namespace memwall
