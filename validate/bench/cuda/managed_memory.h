// Unified memory: what a device must have for it, and moving a range to one side.
#pragma once

#include "validate/replay/cuda/cuda_handles.h"

namespace memwall {

// Throws NotApplicable where CPU and device cannot use managed memory at once (no page faults on the device).
void require_managed_memory();

// Queues the move of the first `bytes` of `range` to the device, or to the host.
void prefetch_managed(const ManagedBuffer& range, std::size_t bytes, bool to_device, cudaStream_t stream);

}  // namespace memwall
