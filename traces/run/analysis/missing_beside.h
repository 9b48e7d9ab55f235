// Does a step that fits PyTorch's allocator leave a place for what takes the GPU's memory beside it?
#pragma once

#include <optional>

#include "traces/run/analysis/summary.h"

namespace memwall {

// Bytes that NCCL's buffers and cuBLAS's workspaces (DeviceMemory) lack beside what the allocator reserves of the
// memory that driver and context leave; 0 = there is a place for them. What the allocator reserved for moments of the
// optimizer that the first step made does not count: it gives that back where others need it. Nothing where the step
// does not fit by itself, or the run does not tell what memory holds.
std::optional<Bytes> missing_beside_allocator(const RunSummary& summary);

}  // namespace memwall
