// Clipping gradients by their norm, where each rank holds a shard of them: every rank computes the norm of what it has,
// an all-reduce of one number over the ranks that share the parameters makes it the norm of all, and each scales its
// own. Source: pytorch/pytorch, torch/nn/utils/clip_grad.py (of DTensors, whose norm is partial over the mesh), and
// FullyShardedDataParallel.clip_grad_norm_.
#pragma once

#include <cstdint>

#include "policies/sharding/fsdp_program.h"
#include "policies/sharding/zero_analysis.h"

namespace memwall {

// Before the first update behind each backward pass that an optimizer step follows. Where the step itself computes
// norms of gradients (linalg_vector_norm, _foreach_norm), behind the last of these, and nothing else; where it does
// not, only with `clips`. Returns how many all-reduces were put in.
std::size_t sum_gradient_norms(FsdpProgram& program, const ZeroAnalysis& analysis, const ShardingGroup& shards,
                               std::uint16_t compute, bool clips);

}  // namespace memwall
