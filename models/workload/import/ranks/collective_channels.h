// Channels of a job: collectives of one process group that wait for each other, in the order of their ends.
//
// A group is one channel; what a pair of its ranks sends each other is another. A batch of sends and receives is one
// kernel: where it does not say with whom, nobody knows who waits for whom, except in a group of two, and it is in no
// channel.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "models/workload/import/ranks/collective_match.h"
#include "models/workload/import/ranks/collective_rendezvous.h"
#include "models/workload/import/timed/rank_capture.h"
#include "models/workload/import/ranks/rank_clock.h"

namespace memwall {

struct ChannelKey {
  std::uint32_t group = 0;           // of the job (CollectiveMatches::groups), or the rank's own
  std::int64_t low = -1, high = -1;  // the pair of ranks; -1 = the whole group
  auto operator<=>(const ChannelKey&) const = default;
};

// What several ranks are known to have done, on the clock of the first.
struct JobChannel {
  std::vector<MatchItem> items;                     // ascending by end
  std::vector<std::vector<RendezvousMember>> members;  // by item
};

// One rank's share, on its own clock.
struct RankChannel {
  std::vector<MatchItem> items;           // ascending by end
  std::vector<std::uint32_t> collective;  // by item: index into RankCapture::collectives
};

using RankChannels = std::map<ChannelKey, RankChannel>;  // by the rank's own groups

RankChannels channels_of(const RankCapture& capture);

// Starts and ends on the clock of the first rank.
std::vector<MatchItem> shifted(const std::vector<MatchItem>& items, const RankClock& clock);

}  // namespace memwall
