// Which collectives of several ranks are one and the same, and how the ranks' clocks run.
//
// Groups are the same where the files give them the same name and list of ranks. Where files do not name groups (before
// 2024, without ExecutionTraces' names), those are the same whose collectives can be matched best. Ranks are placed one
// after the other, each against all placed before it; the first sets the clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/workload/import/ranks/clock_contradiction.h"
#include "models/workload/import/ranks/rank_clock.h"
#include "models/workload/import/timed/rank_capture.h"

namespace memwall {

struct RendezvousMember {
  std::uint32_t rank = 0;        // index into the captures
  std::uint32_t collective = 0;  // index into RankCapture::collectives
};

// Of batches: all that two kernels exchange. Its members are then the first of the messages.
struct CollectiveRendezvous {
  std::uint32_t group = 0;                // index into CollectiveMatches::groups
  std::vector<RendezvousMember> members;  // by rank; at least two
  std::uint32_t last = 0;                 // index into members: who arrived last
  Duration own{};                         // what it takes once all are there (channel_rendezvous.h)
  Duration longest{};                     // captured duration of who waited longest
  Duration spread{};                      // latest end less earliest, on one clock
};

struct MatchedRank {
  ClockFit fit;  // own clock on that of the first rank; of the first itself no samples
  std::uint64_t collectives = 0, met = 0;
  std::uint64_t numbered = 0;          // matched by the library's numbers
  std::uint64_t checked = 0;           // matches whose ends should agree
  std::uint64_t agreeing = 0;          // of those, whose ends do
  ClockContradiction contradiction;    // of the clocks, as the collectives stand in order or by number
  std::uint64_t unknown_peer = 0;      // batches of sends and receives that do not say with whom
  std::uint64_t unanswered = 0;        // messages of batches whose peer is present and has none like them at the time
  std::uint32_t first_unanswered = 0;  // if there are any: index into RankCapture::collectives
};

struct CollectiveMatches {
  std::vector<CapturedGroup> groups;                       // of all ranks; of unnamed ones the name stays ""
  std::vector<std::vector<std::uint32_t>> ranks_of_group;  // who of the captures has it
  std::vector<std::vector<std::uint32_t>> group_of;        // by capture, by its own group
  std::vector<CollectiveRendezvous> rendezvous;            // by start of the last arriver
  std::vector<std::vector<std::uint32_t>>
      rendezvous_of;               // by capture, by its collective: into rendezvous, or kNoRendezvous
  std::vector<MatchedRank> ranks;  // as the captures
  std::uint64_t not_together = 0;  // matches dropped because one had ended before another began
};

// `names` are the captures' files, for messages. Throws InputError where a rank has no collective, none in common with
// the others, or where fewer than half of those it should share end with the others': another run or job.
// REQUIRES: at least one capture.
CollectiveMatches match_collectives(const std::vector<RankCapture>& captures, const std::vector<std::string>& names);

}  // namespace memwall
