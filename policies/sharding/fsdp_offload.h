// CPUOffloadPolicy (FSDP2), CPUOffload (FSDP1): shards, their gradients and the optimizer's states are in the host's
// memory, and the optimizer runs there.
//
// Each of its kernels becomes the same work of the CPU, which reads and writes as many bytes of host memory: an eager
// optimizer of PyTorch on the CPU goes through its tensors as often as one on the GPU does.
// Source: pytorch/pytorch, torch/distributed/fsdp/_fully_shard/_fsdp_api.py (CPUOffloadPolicy).
#pragma once

#include "policies/sharding/fsdp_precision.h"
#include "policies/sharding/zero_analysis.h"
#include "policies/trace/trace_edit.h"
#include "sim/machine/pricer.h"

namespace memwall {

// After split_update() and FsdpPrecision::apply(): sizes are those of shards. `pinned`: of shards and gradients.
// Throws UsageError where the optimizer runs in a CUDA graph.
void offload_to_cpu(TraceEdit& edit, const ZeroAnalysis& analysis, const FsdpPrecision& precision, bool pinned,
                    const Pricer& pricer);

}  // namespace memwall
