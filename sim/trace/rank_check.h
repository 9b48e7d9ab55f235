// What must hold besides of a trace that holds several ranks; sim/trace/trace_check.h asks it. Internal to sim/.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

// Sentences, at most `limit`: ranks in range and in order; threads, streams, devices, events and storages of one rank
// each; a rendezvous has one op of each of its ranks at most, all of one kind of collective.
// `of_ops` false: the caller has seen that the trace holds one rank and no rendezvous, so that nothing can be wrong with
// its ops. REQUIRES: all other indices are in range.
std::vector<std::string> check_ranks(const Trace& trace, std::size_t limit, bool of_ops);

}  // namespace memwall
