// torch.utils.checkpoint(use_reentrant=False): a region saves its inputs only, and is run again when backward first
// needs one of the tensors that it would have saved. The second run stops as soon as it has made the last of them.
#pragma once

#include <functional>

#include "models/workload/generate/tape.h"

namespace memwall {

// Runs `region` and returns its result. `region` must hold the tensors that it reads by value, and make the same
// tensors each time.
Tensor checkpoint(Tape& tape, std::function<Tensor()> region);

}  // namespace memwall
