// Which layers each stage of a pipeline holds: Megatron-LM's divisions (revision d98e8a64,
// megatron/core/transformer/transformer_block.py, get_num_layers_to_build, and
// megatron/core/transformer/pipeline_parallel_layer_layout.py), torchtitan's (revision b5bcd76c,
// distributed/pipeline_parallel.py) and DeepSpeed's `uniform`.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/generate/configuration/model_parallel.h"

namespace memwall {

struct StageLayers {
  std::int64_t first = 0, count = 0;  // layers of the model
  bool embedding = false, loss = false;
  bool operator==(const StageLayers&) const = default;
};

// By stage; stage s is chunk s / pipeline of rank s % pipeline.
// Throws UsageError where the layers cannot be divided as `parallel` says: a number that does not divide, a layout with
// another number of stages or layers, `m` (multi-token prediction is not implemented), or one without E and L.
std::vector<StageLayers> stage_layers(const ModelParallel& parallel, std::int64_t layers);

}  // namespace memwall
