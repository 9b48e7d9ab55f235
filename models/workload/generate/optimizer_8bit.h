// AdamW with 8-bit states, as bitsandbytes' AdamW8bit (Dettmers et al. 2021): both moments in one byte per element,
// quantized in blocks of 256 with a scale each; tensors of fewer than 4,096 elements keep them in fp32, and with
// `embedding_states_in_fp32` embeddings do (GlobalOptimManager.register_module_override, which Transformers' Trainer
// calls). Parameters are updated one by one, and after each the host waits for the device.
//
// PagedAdamW8bit (`paged_optimizer`): moments of 100,000 elements and more are cudaMallocManaged's, which PyTorch's
// allocator knows nothing of: their scales are ordinary tensors. Where the GPU has no room for all of them, an update
// after another touches them in a circle, so that none is there when its turn comes (least recently used goes first):
// each is prefetched before its update and leaves behind it. What is on the GPU at a time is what room is left, and no
// less than a few of the driver's blocks of 2 MiB, a window that all of them go through. Where the GPU has the room
// nothing moves, and the moments take it: that is the same optimizer without `paged_optimizer`.
// Source: bitsandbytes/optim/optimizer.py (get_state_buffer, prefetch_state, step).
#pragma once

#include "models/workload/generate/operators/tape.h"

namespace memwall {

struct Optimizer8bit {
  Tensors maps;   // the two tables of 256 values that all parameters share
  Tensor window;  // of pages on the GPU; empty without paging
};

Optimizer8bit make_optimizer_8bit(Tape& tape, const Recipe& recipe);
void make_states_8bit(Tape& tape, const Recipe& recipe, Parameter& parameter, const Optimizer8bit& shared);
void update_8bit(Tape& tape, Parameter& parameter);

}  // namespace memwall
