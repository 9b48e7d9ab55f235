// Cross entropy of logits that are split by the vocabulary, as DTensor's loss_parallel computes it
// (torch/distributed/tensor/parallel/loss.py, pytorch 02eef6b8b631), which torchtitan takes: decomposed into PyTorch's
// operators, none of them in place, with three all-reduces of a number per row. Each tensor of the logits' size is one
// of its own: three live beside the logits in forward, four in backward, one of them kept between.
#pragma once

#include "models/workload/generate/operators/operators_parallel.h"

namespace memwall {

// The mean loss of logits in fp32 [batch, tokens, words of this rank]. Autograd keeps the logarithms of the
// probabilities.
Tensor loss_parallel(Tape& tape, TensorParallel& parallel, const Tensor& logits, const Tensor& targets);

}  // namespace memwall
