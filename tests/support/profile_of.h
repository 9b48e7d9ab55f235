// What a profiler sees of a step: kernels, calls and host time; no storages, no modules, no shapes.
#pragma once

#include "sim/trace/trace.h"

namespace memwall {

// The step with a mark at the end of each thread's program, so that a profile holds the host time of what is behind the
// last line, too.
Trace with_end_marks(Trace step);

// Times are kept, and what happens between lines is host time before the next. REQUIRES: each thread's program ends
// with a line that is no allocation and no free.
Trace profile_of(const Trace& step);

// The lines of `profile` without those that `leaves_out` (by op) says, with their host time.
Trace without_lines(const Trace& profile, const std::vector<bool>& leaves_out);

}  // namespace memwall
