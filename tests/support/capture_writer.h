// Writes a trace down as a captured step (traces/capture/FORMAT.md), for tests of its reader.
#pragma once

#include <string>

#include "sim/trace/trace.h"

namespace memwall {

// The text of an .mwc file, in mode "real" with the trace's times, or in mode "fake" without any.
// REQUIRES: ops of the kinds kernel, memset (becomes a kernel), copy, collective, alloc, free,
// event_record, event_wait, synchronize, hand_over, host_work and mark only; marks that are no step's
// first op are left out. `with_phases`: allocs and frees say their phase and module.
std::string capture_text(const Trace& trace, bool real, bool with_phases = true);

// What importing capture_text(trace, real) must give, notes aside: the trace with what the format does not
// hold replaced by the reader's rules (names of streams and threads, kernels named by their operator,
// hand-overs inferred, no times in mode "fake").
Trace as_captured(Trace trace, bool real);

// A sentence on the first difference between two traces, notes aside; "" if there is none.
std::string first_difference(const Trace& a, const Trace& b);

}  // namespace memwall
