// Host time of a trace on another machine's host: each call times the ratio of what both machines' files say of it.
#pragma once

#include "sim/machine/machine.h"
#include "sim/trace/trace.h"

namespace memwall {

// Calls (HostCosts::launch, copy_call, event_call, allocator_call), host gaps (the framework's dispatch, by phase), the
// replay's launch latency and gaps between queued kernels. What either file leaves out stays as it was. A note says the
// factors.
void transfer_host_time(Trace& trace, const HostCosts& from, const HostCosts& to);

}  // namespace memwall
