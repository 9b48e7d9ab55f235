// Several ranks of one job in one trace: each rank's program whole, one after the other, on host threads, streams and
// devices of its own. What joins them is the meetings of their collectives (kNoMeeting in sim/op.h).
//
// Each rank has a GPU's memory and links of its own; links with several sharers (Link::sharers) are shared by as many
// ranks in the order of their numbers, and host and storage tiers by all.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/trace.h"

namespace memwall {

// One rank to be joined: its program, as imported alone, and its number in the job.
struct RankProgram {
  std::uint32_t number = 0;
  Trace trace;
};

// The ranks as one trace, in the order of their numbers. Process groups are the same where their names and members are;
// meetings (Op::target of collectives) are kept as they are: equal numbers in different ranks meet.
// REQUIRES: at least one rank, numbers differ, each trace is sound and holds one rank.
Trace joined_ranks(std::vector<RankProgram> ranks);

// One rank's program again, meetings kept. REQUIRES: index < rank_table.size(), or 0 where that is empty.
Trace one_rank(const Trace& trace, std::uint16_t index);

// Ranks whose programs the trace holds: 1 where rank_table is empty.
std::size_t rank_count(const Trace& trace);

}  // namespace memwall
