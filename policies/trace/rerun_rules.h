// What must be known of an op before it is run again, merged or moved: does it draw random numbers, and where before
// it may other ops stand?
#pragma once

#include "sim/trace/trace.h"

namespace memwall {

// By the names of PyTorch's operators: dropout, rand, bernoulli, ....
bool draws_random_numbers(const Op& op, const Trace& trace);

// Does it write any storage that the step has made? What does not counts alone: batches, running statistics.
bool makes_anything(const Op& op, const Trace& trace);

// Just before `op` and the allocs right before it (an autograd node unpacks what it saved before it
// allocates its results), and not between the nodes of a CUDA graph.
OpId insertion_point(const Trace& trace, OpId op);

// `op`, or the last node of the CUDA graph that it is a node of: other ops may stand behind that.
OpId last_of_graph(const Trace& trace, OpId op);

}  // namespace memwall
