// What was concluded when several captures became one trace, in sentences with their coverage.
// Internal to the join of ranks.
#pragma once

#include <string>
#include <vector>

#include "models/workload/import/ranks/collective_rendezvous.h"
#include "models/workload/import/timed/decision.h"
#include "sim/trace/trace.h"

namespace memwall {

struct RankJoin {
  const std::vector<RankCapture>& captures;  // by rank
  const std::vector<std::string>& names;     // their files
  const std::vector<std::uint32_t>& numbers;
  const std::vector<ProcessGroup>& groups;  // as CollectiveMatches::groups
  const CollectiveMatches& matches;
  const std::vector<Duration>& starts;  // of the programs, after the earliest
  std::uint32_t job_ranks = 0;          // 0 = unknown
};

std::vector<Decision> join_decisions(const RankJoin& join);

// How many members of a rendezvous's group are not among the captures; 0 where the group's size is unknown.
std::uint32_t absent_members(const RankJoin& join, const CollectiveRendezvous& rendezvous);

// RendezvousTable in which a rank that is absent was probably the last: the own duration is more than 1.5 times, and 20 us
// above, what another rendezvous of the group and kind shows to be enough. Enough for n bytes is ceil(n / m) times the
// duration of any rendezvous of m bytes: what is sent in pieces costs at most their sum, and less costs no more.
std::uint64_t likely_waiting_for_absent_rank(const RankJoin& join);

}  // namespace memwall
