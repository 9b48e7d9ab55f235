// Waiting, and where times come from: totals over all ops of a run.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/duration_sum.h"
#include "traces/run/run.h"

namespace memwall {

struct WaitTotal {
  DurationSum time;
  std::uint64_t count = 0;
};

// Time between when an op could have started or returned by itself and when it did.
//
// Host: how much longer a call took than its own cost, by what it waited for (synchronize,
// launch_queue, memory), and for hand_over how long the thread stood still before.
// Device: how long an op that was ready to launch stood before its start, by the bound that was
// met last (stream_order, event, occupancy, copy_engine, page_fault). Ops whose launch was
// last (reason launch) did not wait: the device waited for the host; count only. And peer: how long
// collectives that had begun waited for the last of their rendezvous, besides what they waited before.
//
// These are sums over ops, for programs: of a thousand ops that stand in a stream behind one another each waits for all
// before it, so that the sum may be many times the run. What a person can trust is how long a lane stood still.
//
// A host thread stands still as said above. A stream stands still from the end of one op (of its first: from when that
// was ready) to the start of the next: as long as the host had not launched that, because of `launch`, then because of
// the bound that was met last; a collective that has begun, until the last of its rendezvous has, because of `peer`. So
// a lane waits for one thing at a time, and all its waits together are no longer than the run.
struct LaneWait {
  std::string lane;  // as lane_names.h has it
  bool on_host = false;
  WaitReason reason = WaitReason::none;
  Duration time{};
  std::uint64_t count = 0;  // ops before, or within, which it did so
};

struct Waits {
  std::array<WaitTotal, kWaitReasons> host{}, device{};
  std::vector<LaneWait> lanes;  // threads, then streams, in their order; of each by reason; none of no time
};
Waits total_waits(const Run& run);

// Device time (sum over kernels, memsets, copies, collectives, storage I/O) by origin.
struct OriginShares {
  Duration measured{}, transferred{}, modelled{};
  Duration total() const { return measured + transferred + modelled; }
  // 0 where nothing ran.
  double share(Duration part) const {
    return total().count() == 0 ? 0.0 : static_cast<double>(part.count()) / static_cast<double>(total().count());
  }
};
OriginShares origin_shares(const Run& run);

}  // namespace memwall
