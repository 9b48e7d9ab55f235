// The collectives that a policy has added to each of several ranks' programs, joined.
// Internal to sim/policy.
#pragma once

#include <string>
#include <vector>

#include "sim/trace/ranks.h"

namespace memwall {

// Makes the added collectives of the ranks that meet nobody yet one and the same, in their order: the first of each
// rank meet, then the second, ... Their process group gets its members where all of them are in the trace; absent ranks
// arrive with those that are there. Each program's Trace::ranks, which says over how many ranks the policy has added
// them, becomes how many of those it counts for. `policy` is for sentences. Throws UsageError where the ranks have
// added collectives of different kinds or sizes, or over other numbers of ranks than there can be.
void join_added_collectives(std::vector<RankProgram>& ranks, const std::string& policy);

}  // namespace memwall
