// A rank taken out of a program that stands for several, so that it can be slower than its equals, which wait for it
// where they work together (sim/trace/program_parts.h).
#pragma once

#include <cstdint>
#include <functional>

#include "sim/trace/trace.h"

namespace memwall {

// How much two ranks, by their numbers in the job, have in common: links, a host. A program stands for ranks in equal
// places alone, so that those which have as much in common with the rank that is taken out stay together, and no
// others.
using Closeness = std::function<int(std::uint32_t, std::uint32_t)>;

// The same job with a program of its own for rank `number`; the trace as it is where no program stands for that rank
// and others. Throws UsageError where its collectives are more than can be numbered.
// REQUIRES: the trace is sound.
Trace with_rank_apart(Trace trace, std::uint32_t number, const Closeness& closeness);

}  // namespace memwall
