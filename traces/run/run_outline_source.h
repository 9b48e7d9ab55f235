// What both sources of a run make in the same way. Internal to traces/run.
#pragma once

#include "traces/run/engine_lanes.h"
#include "traces/run/run_source.h"

namespace memwall {

// The run without what grows with it.
Run small_parts(const Run& run);

// EngineLanes that knows the lanes of an outline.
EngineLanes engine_lanes_of(const RunOutline& outline);

// Makes room for, and appends, ops with their records. REQUIRES: ids ascend by one from block.first.
void reserve_spans(SpanBlock& block, std::size_t count);
void append_span(SpanBlock& block, const Op& op, const OpRecord& record, const EngineLanes& engines);

// Throws LoadCancelled if whoever watches says so.
inline void report(const LoadProgress& progress, double share) {
  if (progress && !progress(share)) throw LoadCancelled{};
}

}  // namespace memwall
