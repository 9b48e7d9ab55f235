// Are a capture and an ExecutionTrace of one rank of one run?
//
// Ranks of a job run the same operators in the same order, so that an ExecutionTrace of another one is joined by names
// without a word. What tells them apart: the ids of their processes (equal where each runs in a container), the number
// of the rank that collectives or the capture name, and the shapes that both files list of an operator's inputs.
#pragma once

#include "models/workload/import/execution_trace/execution_trace.h"
#include "models/workload/import/execution_trace/operator_match.h"
#include "models/workload/import/timed/timed_capture.h"

namespace memwall {

// Of the operators that are matched and list the extents of the same tensor in both files.
struct ShapeComparison {
  std::size_t compared = 0, differing = 0;
  std::size_t collectives_differing = 0;  // of differing: their messages
  std::uint32_t first = kNoIndex;         // the first that differs, a collective if there is one: a node
};
ShapeComparison compare_shapes(const TimedCapture& capture, const ExecutionTrace& execution,
                               const OperatorMatch& match);

// Of the operators compared: more that differ are of another run. One file may list what an operator changed.
inline constexpr double kMostDiffering = 0.01;

// Throws InputError with a sentence on what differs: processes, ranks, messages of collectives, or shapes.
void require_same_run(const TimedCapture& capture, const ExecutionTrace& execution, const OperatorMatch& match);

}  // namespace memwall
