// Rewriting a pipeline's program pass by pass, where forward passes of several micro-batches follow each other before a
// backward pass: what a policy makes of the passes of one micro-batch holds for all that run the same ops.
//
// Of each kind of micro-batch (those of a stage with the same ops; mostly the first, which gathers parameters, and the
// others) one forward pass is put right before its backward pass, into a program of its own; what the policy makes of
// that stands in the place of all passes of the kind. Messages, reductions and the update stay as they are.
#pragma once

#include <functional>

#include "sim/trace/trace.h"

namespace memwall {

// Is it a rank's program of a pipeline, whose passes are marked (sim/trace/pipeline_chunk.h)?
bool is_pipeline_stage(const Trace& trace);
// Do forward passes follow each other before a backward pass, in a program that says where each pass ends
// (sim/trace/pass_end_mark.h)?
bool has_pipelined_passes(const Trace& trace);

// `rewrite` is given a program in which forward and backward passes alternate: a pure function that changes passes
// alone. Throws UsageError where it changes what stands between them, and what it throws.
// REQUIRES: has_pipelined_passes(trace); the trace holds one rank and one step.
Trace with_each_pass_rewritten(const Trace& trace, const std::function<Trace(const Trace&)>& rewrite);

}  // namespace memwall
