// Clipping gradients by their norm, where each rank holds a shard of them: every rank computes the norm of what it has,
// an all-reduce over the ranks that share the parameters makes it the norm of all, and each scales its own. Version 2
// sums one number per gradient, in its type, before they become one; version 1 one number in fp32. Source:
// pytorch/pytorch, torch/nn/utils/clip_grad.py (of DTensors, whose norms are partial over the mesh, and so is their
// stack), and FullyShardedDataParallel.clip_grad_norm_.
#pragma once

#include <cstddef>
#include <cstdint>

#include "policies/sharding/fsdp_layout.h"
#include "policies/sharding/fsdp_precision.h"
#include "policies/sharding/fsdp_program.h"
#include "policies/sharding/fsdp_settings.h"
#include "policies/sharding/zero_analysis.h"

namespace memwall {

struct NormSums {
  std::size_t over_shards = 0, over_layers = 0;  // all-reduces that were put in
  std::size_t of_step = 0;                       // passes whose norm the step sums over the layers' ranks by itself
};

// Before the first update behind each backward pass that an optimizer step follows. Where the step itself computes
// norms of gradients (linalg_vector_norm, _foreach_norm), behind the last of these, and nothing else; where it does
// not, only with settings.clips, and then over the ranks that share layers (tensor parallelism), too.
NormSums sum_gradient_norms(FsdpProgram& program, const ZeroAnalysis& analysis, const FsdpLayout& layout,
                            const FsdpPrecision& precision, const FsdpSettings& settings, const ShardingGroup& shards,
                            std::uint16_t compute);

}  // namespace memwall
