// Several columns that read one input, under torch's async tensor parallelism: torch.compile's pass merges their gather
// and their products into one operator, which hands on what it gathered as well
// (torch/_inductor/fx_passes/micro_pipeline_tp.py, fuse_all_gather_matmul). Backward's sum of their inputs' gradients
// is made of several products, which the pass does not merge with its reduce-scatter: that is waited for.
#pragma once

#include <vector>

#include "models/workload/generate/operators/operators_parallel.h"

namespace memwall {

// The node of columns that read one input: of x and then the weights, which it keeps in their order.
Tape::Function columns_node(Tape& tape, const Tensor& x, const std::vector<const Tensor*>& weights,
                            GradientFunction::Apply apply);
// The gradient of their input is a sum: the first part becomes it, further ones are added to it in place.
void add_column(Tape& tape, Tensor& sum, Tensor part);

// x W^T of all tokens for each weight W, the rows of this rank; x: this rank's tokens. REQUIRES: parallel.overlaps().
Tensors columns_beside_gather(Tape& tape, TensorParallel& parallel, const Tensor& x,
                              const std::vector<const Tensor*>& weights);

}  // namespace memwall
