// A run as Chrome trace events (JSON), for chrome://tracing, Perfetto's viewer and scripts.
//
// Format: "Trace Event Format", Google, docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
// Complete events ("X") for calls, work on streams, copy engines and a pager's moves; counters ("C") for
// memory per tier and flow per link; arrows ("s", "f") for the waits that crossed lanes. Times are
// microseconds with all digits.
#pragma once

#include <iosfwd>

#include "traces/run/run.h"

namespace memwall {

// Same run, same bytes. The caller looks after the stream's state.
void export_chrome(const Run& run, std::ostream& out);

}  // namespace memwall
