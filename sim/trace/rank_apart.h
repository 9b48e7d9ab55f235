// A rank taken out of a program that stands for several, so that it can be slower than its equals.
//
// Ranks of one program arrive together at what they do in common, which needs no rendezvous. Once one of them has a
// program of its own it does: every collective of a group whose members now have several programs becomes a meeting of
// these. Messages that met a rank of another program meet each of the new ones: all wait for the slowest of them, as
// they would a little later, at the next collective of its group.
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
