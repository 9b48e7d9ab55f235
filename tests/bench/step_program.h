// The program that the benchmarks replay, write and read.
#pragma once

#include "sim/trace/trace.h"

namespace memwall {

// `ops` ops: half kernels (each a flow on HBM), a quarter allocs, a quarter frees, on one stream,
// with the host a little ahead of the device.
Trace bench_program(std::size_t ops);

// `ops` copies that a policy put in, in turns on eight streams, from host memory to the GPU and back: more at a time than
// the links carry, so that each begin and end changes the rates of all that run.
Trace contended_program(std::size_t ops);

}  // namespace memwall
