// Who waited for whom, rank by rank and group by group: of the collectives that met others in the trace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/duration_sum.h"
#include "traces/run/run.h"

namespace memwall {

// `waiter` had begun, and `last` came last. Both are indices into Trace::rank_table.
struct PeerWait {
  std::size_t waiter = 0, last = 0;
  DurationSum time;
  std::uint64_t count = 0;
};

struct GroupMeetings {
  ProcessGroup group;
  std::uint64_t collectives = 0;  // that met
  DurationSum waited;             // of all members
  // Who came last most often, of equals the first: an index into Trace::rank_table, and to how many.
  std::size_t last = 0;
  std::uint64_t last_count = 0;
};

struct RankMeetings {
  std::vector<PeerWait> waits;        // ascending by waiter, then by who came last; where somebody waited
  std::vector<GroupMeetings> groups;  // that met, by Op::group
};

// Nothing where the trace holds one rank.
RankMeetings rank_meetings(const Run& run);

}  // namespace memwall
