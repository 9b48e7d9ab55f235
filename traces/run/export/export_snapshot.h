// A run as a memory snapshot of PyTorch: the pickle that torch.cuda.memory._dump_snapshot writes, for
// pytorch.org/memory_viz, torch/cuda/_memory_viz.py and `memwall memory`.
//
// Format: pytorch/pytorch, torch/csrc/cuda/memory_snapshot.cpp and Module.cpp (2.15). Every device that the step has
// storages on is a device, of several ranks in their order. Addresses, segments and requests without memory are those
// of the caching allocator, to which the run's allocations and frees are given again in their order. What lives before
// the first op is allocated at time 0. time_us counts from the beginning of the run.
#pragma once

#include <iosfwd>
#include <string>

#include "traces/run/run.h"

namespace memwall {

// Same run, same bytes. Returns a sentence where the allocator, asked again, holds another amount of memory at some
// instant than the run says; "" where it is the same at every instant. Throws UsageError where there is nothing to
// show: a run under another allocator, or of a step that knows no allocations. The caller looks after the stream's
// state, and opens it as binary.
std::string export_snapshot(const Run& run, std::ostream& out);

}  // namespace memwall
