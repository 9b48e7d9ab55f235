// Channels of a job: collectives of one process group that wait for each other, in the order of their ends.
//
// A group is one channel; what one of its ranks sends another is a channel of its own, in which NCCL keeps the order.
// Of a batch of sends and receives, which is one kernel, each message is in the channel of its pair. Where a kernel
// does not say with whom it exchanges, nobody knows who waits for whom, except in a group of two, and it is in no
// channel.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "models/workload/import/ranks/collective_match.h"
#include "models/workload/import/ranks/collective_rendezvous.h"
#include "models/workload/import/ranks/rank_clock.h"
#include "models/workload/import/timed/rank_capture.h"

namespace memwall {

struct ChannelKey {
  std::uint32_t group = 0;                     // of the job (CollectiveMatches::groups), or the rank's own
  std::int64_t source = -1, destination = -1;  // who sends to whom; -1 = the whole group
  auto operator<=>(const ChannelKey&) const = default;
};

// What several ranks are known to have done, on the clock of the first.
struct JobChannel {
  std::vector<MatchItem> items;                        // ascending by end
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

// The same channel as others know it and as rank `self` does (-1 where it does not say who it is), on one clock: by
// time. What one rank sends another keeps its order: where sends end long before they are received, times alone put
// them to the receives before theirs, which leaves more without one.
std::vector<ItemPair> match_on_clock(const ChannelKey& key, std::int64_t self, const std::vector<MatchItem>& known,
                                     const std::vector<MatchItem>& own);

}  // namespace memwall
