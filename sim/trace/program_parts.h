// A program that stands for several ranks, written once for each of several parts of them.
//
// Ranks of one program arrive together at what they do in common, which needs no rendezvous. Once they have several
// programs they do: every collective of a group whose members now have several programs becomes a meeting of these.
// Messages that met a rank of another program meet each of the new ones: all wait for the slowest of them, as they would
// a little later, at the next collective of its group.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

using RankNumbers = std::vector<std::uint32_t>;  // in the job, ascending

// All ranks that run a program.
RankNumbers ranks_of(const Rank& rank);
bool has_rank(const RankNumbers& numbers, std::uint32_t number);

// The same job with a program for each part of the ranks of each; the first of a part gives it its number, and the trace
// is as it is where each has one part. Throws UsageError where its collectives are more than can be numbered.
// REQUIRES: the trace is sound; the parts hold the ranks of that program, each once, and none is empty.
Trace with_programs_in_parts(Trace trace, const std::function<std::vector<RankNumbers>(const Rank&)>& parts_of);

}  // namespace memwall
