// Who met whom, and what it took: from the channels of a job, once every rank is placed.
//
// What a rendezvous takes when all are there is the captured duration of its last arriver. A kernel that stands for a
// batch ends when the last of its exchanges does: where the last arriver exchanges with others too, the duration is
// that from its start to the first end of the two kernels, if that is less, for the exchange was done by then. No
// capture says more. This keeps what was captured: every kernel ends when the exchange ends that was its last. Where
// the other kernel had ended before (what was sent lay in a buffer, or clocks are off by as much), it is the shorter of
// their durations. Internal to ranks/.
#pragma once

#include <map>
#include <vector>

#include "models/workload/import/ranks/collective_channels.h"
#include "models/workload/import/ranks/collective_rendezvous.h"

namespace memwall {

// Fills `out.rendezvous`, `out.rendezvous_of`, and of ranks what they met. The channels give up their members.
// REQUIRES: every rank has its clock and its groups in `out`.
void find_rendezvous(const std::vector<RankCapture>& captures, std::map<ChannelKey, JobChannel>& channels,
                     CollectiveMatches& out);

}  // namespace memwall
