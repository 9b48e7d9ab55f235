// Host time of a trace on another machine's host: each call times the ratio of what both machines' files say of it.
#pragma once

#include "sim/machine/machine.h"
#include "sim/trace/trace.h"

namespace memwall {

// Calls (HostCosts::launch, copy_call, event_call, allocator_call), the replay's launch latency and gaps between queued
// kernels. What either file leaves out stays as it was, and so does the framework's own time between calls: what
// machine files say of that was measured with other programs and other versions of the framework on each machine (of
// the V100 with DLRM, of the A100 with a Transformer), so that their ratio says nothing of the processors. It once made
// the host of an A100 1.6 to 3 times slower than a V100's. A note says the factors.
void transfer_host_time(Trace& trace, const HostCosts& from, const HostCosts& to);

}  // namespace memwall
