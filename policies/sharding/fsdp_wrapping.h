// What FullyShardedDataParallel's constructor does with memory before the first step, unit by unit, inner units first:
// a unit's parameters come to the GPU (device_id), with sync_module_states they are broadcast in buffers of 250 MiB,
// they are joined in a flat parameter, which is cut; all but the cut goes. The blocks stay in the allocator's cache.
// Source: torch/distributed/fsdp/_init_utils.py (_init_param_handle_from_module), torch/distributed/fsdp/_flat_param.py
// (_init_flat_param_and_metadata, shard), torch/distributed/utils.py (_sync_module_states).
#pragma once

#include "policies/sharding/fsdp_layout.h"
#include "policies/sharding/fsdp_program.h"
#include "policies/sharding/fsdp_settings.h"
#include "policies/sharding/fsdp_units.h"

namespace memwall {

// Before the step's first op, in the pool of `compute`. Shards that stay on the GPU are there already. REQUIRES: the
// settings have a wrapping.
void wrap_units(FsdpProgram& program, const FsdpUnits& units, const FsdpLayout& layout, const FsdpSettings& settings,
                std::uint16_t compute);

}  // namespace memwall
