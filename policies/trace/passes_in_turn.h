// The passes of a step whose forward and backward passes alternate: what policies ask that work pass by pass.
#pragma once

#include <vector>

#include "policies/trace/phases.h"

namespace memwall {

// passes(). Throws UsageError where forward passes of several micro-batches follow each other before a backward pass,
// as marks of a pipeline's program tell (sim/trace/pipeline_chunk.h): whose backward is whose is then not taken apart.
std::vector<Pass> passes_in_turn(const Trace& trace);

}  // namespace memwall
