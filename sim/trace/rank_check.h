// What must hold besides of a trace that holds several ranks; sim/trace/trace_check.h asks it. Internal to sim/.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

// Sentences, at most `limit`: ranks in range and in order; threads, streams, devices, events and storages of one rank
// each; a rendezvous has one op of each of its ranks at most, all of one kind of collective.
// REQUIRES: all other indices are in range.
std::vector<std::string> check_ranks(const Trace& trace, std::size_t limit);

}  // namespace memwall
