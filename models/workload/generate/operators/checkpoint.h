// torch.utils.checkpoint(use_reentrant=False): a region saves its inputs only, and is run again when backward first
// needs one of the tensors that it would have saved. The second run stops as soon as it has made the last of them, or,
// as in Megatron-LM (CheckpointFunction of megatron/core/tensor_parallel/random.py), goes on to the region's end.
#pragma once

#include <cstdint>
#include <functional>

#include "models/workload/generate/operators/tape.h"

namespace memwall {

enum class SecondRun : std::uint8_t { stops_early, whole };

// Runs `region` on `input` and returns its result. What `region` reads besides it must hold by value; it must make the
// same tensors each time. The input is saved as any tensor is: hooks that apply outside may pack it.
Tensor checkpoint(Tape& tape, const Tensor& input, std::function<Tensor(const Tensor&)> region,
                  SecondRun second_run = SecondRun::stops_early);

}  // namespace memwall
