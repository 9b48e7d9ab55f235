// Does a capture hold what it needs to be replayed? Said first, for what follows from a file with holes is worth
// little.
//
// A capture is not a replay where most of what ran is not in it, or was launched by nobody in it: the profiler did not
// record the GPU, or recorded CUDA graphs, as many as a tenth of the recorded work, without their kernels. It has gaps
// where some of it is missing, where waits without a cause in the file delay what follows by more than 2 % of the GPU's
// span (docs/kineto.md; a late start that nobody feels is none), or where work starts before it was launched or
// ends after a call that waited for it, so that the clocks of host and GPU contradict each other, or starts before its
// stream was free.
#pragma once

#include <string>

#include "models/workload/import/timed/joined_capture.h"
#include "models/workload/import/timed/timed_import.h"

namespace memwall {

struct CaptureCompleteness {
  Completeness state = Completeness::complete;
  std::string reason{};  // a sentence; "" where complete
};

// Which calls launch, and for which the file has no work. REQUIRES: no call of the capture was released.
LaunchingCalls launching_calls(const JoinedCapture& joined);

// REQUIRES: `summary` is complete.
CaptureCompleteness completeness_of(const JoinedCapture& joined, const ImportSummary& summary);

// By how much, where and how often the GPU's clock contradicts the host's, without a full stop; "" where nothing starts
// before its launch and no call returns before what it waits for ends.
std::string clock_contradiction(const JoinedCapture& joined, const ImportSummary& summary);

}  // namespace memwall
