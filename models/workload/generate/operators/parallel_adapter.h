// What LoRA's pairs send beside linear layers that tensor-parallel ranks share (Megatron-Bridge,
// src/megatron/bridge/peft/utils.py, ParallelLinearAdapter): the first factor of a column's pair is split by its few
// outputs, which are gathered; that of a row's by its inputs, whose results are summed. The second is split by its
// outputs: a column's rank needs its own alone, a row's all of them.
#pragma once

#include "models/workload/generate/operators/operators_parallel.h"

namespace memwall {

// [.., rank / ranks] to [.., rank]: gathered; backward summed over ranks, and each takes its own.
Tensor gathered_features(Tape& tape, TensorParallel& parallel, const Tensor& x);
// Summed over ranks; backward as it is.
Tensor summed_features(Tape& tape, TensorParallel& parallel, const Tensor& x);
// What a second factor reads that is split by its outputs: backward sums the gradients of all ranks.
Tensor copied_features(Tape& tape, TensorParallel& parallel, const Tensor& x);
// [.., width / ranks] of all tokens to [.., width] of the tokens that layers between products have: gathered, then this
// rank's tokens with sequence parallelism; backward the other way.
Tensor features_of_tokens(Tape& tape, TensorParallel& parallel, const Tensor& x);

}  // namespace memwall
