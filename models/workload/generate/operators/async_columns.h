// Several columns that read one input, under torch's async tensor parallelism: torch.compile's pass merges their gather
// and their products into one operator, which hands on what it gathered as well
// (torch/_inductor/fx_passes/micro_pipeline_tp.py, fuse_all_gather_matmul). Backward's sum of their inputs' gradients
// is made of several products, which the pass does not merge with its reduce-scatter: that is waited for.
#pragma once

#include <vector>

#include "models/workload/generate/operators/operators_parallel.h"

namespace memwall {

// x W^T of all tokens for each weight W, the rows of this rank; x: this rank's tokens. REQUIRES: parallel.overlaps().
Tensors columns_beside_gather(Tape& tape, TensorParallel& parallel, const Tensor& x,
                              const std::vector<const Tensor*>& weights);

}  // namespace memwall
