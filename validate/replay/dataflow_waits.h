// Waits between streams that a capture does not show.
//
// Captures have no event waits: importers conclude them from times, and find none where nothing had to wait. Executed
// without host time, the same ops follow each other sooner. What ops read and write says which waits there must be.
#pragma once

#include "sim/trace/trace.h"

namespace memwall {

// Before each op of the device that uses a storage whose former users on another stream may not have ended (what it
// reads: the last writer; what it writes: all since), an event of that stream and a wait for it. Ops that policies
// added are left alone: their waits are theirs. A note says how many waits were added. REQUIRES: check(schedule) is
// empty.
void add_dataflow_waits(Trace& schedule);

}  // namespace memwall
