// What PyTorch's allocator has reserved in a job from its first step on. An optimizer of torch.optim makes its moments
// in its first step (torch/optim/adamw.py, _init_group: state is empty before), when the allocator's cache is full of
// what forward and backward have left. The moments take pieces of those blocks and stay there, so that the next forward
// pass finds them too small and obtains more: a step that begins with the moments side by side, as the simulated one
// does, reserves less.
#pragma once

#include <optional>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

// The most that a GPU's allocator reserves in the first two steps of the job, by rank of the run: the program's requests
// and frees in the order in which they happened in the simulated step, first without the moments, which the optimizer's
// first use makes, then with them. Nothing of a rank whose step has no moments that are made so (labels `exp_avg`,
// `exp_avg_sq`, `momentum_buffer`), of other allocators than PyTorch's, of runs with a pager, and where the job does not
// fit. `tiers`: of each rank its device memory, an index into Machine::tiers.
std::vector<std::optional<Bytes>> reserved_from_first_step(const Run& run, const std::vector<std::size_t>& tiers);

}  // namespace memwall
