// The two ways to take a cross entropy piece by piece, written in the place of one that is taken at once.
#pragma once

#include <cstdint>

#include "policies/recipe/loss_program.h"
#include "policies/trace/trace_edit.h"
#include "sim/machine/pricer.h"

namespace memwall {

// A step whose loss is `program`, with that program taken out: `edit` holds what is left, and where the other one goes.
struct OpenedLoss {
  TraceEdit& edit;
  const Dataflow& flow;
  const Pass& pass;
  const LossProgram& program;
  const Pricer& pricer;
  bool sums_in_place = true;  // the engine adds to a gradient that nobody else holds
  bool seed_goes = false;     // the program holds no reference to the number that backward begins with
  bool weight_goes = false;   // a cast of the weight, which the last node to need it gives back

  InsertionPoint forward;   // where its first tensor came
  InsertionPoint backward;  // likewise
  // Before what uses the gradient of `program.x`: where nodes run that were recorded before the output layer's.
  InsertionPoint behind;

  // `by` takes the place of what `maker` made (kNoOp: whatever is left of what did): in its readers, where it is freed,
  // and, where it was known as more than that op's result, with its kind and label.
  void take_place_of(StorageId storage, StorageId by, OpId maker);
  // Calls of the framework without a kernel, before that op of the captured step.
  void count_calls(OpId before, int calls);
};

// torchtune's CEWithChunkedOutputLoss: the logits of `chunks` pieces of each sequence (Tensor.tensor_split), then a
// sum of cross entropies, each of logits cast up alone, divided by the number of targets.
void write_chunked_loss(OpenedLoss& opened, std::int64_t chunks);

// Liger's LigerFusedLinearCrossEntropyFunction (src/liger_kernel/ops/fused_linear_cross_entropy.py, versions 0.6 and
// 0.7): logits of a piece are made, become their own gradient in place and give their parts of the gradients of input
// and weight, all in forward. REQUIRES: no cast of x.
void write_fused_linear_loss(OpenedLoss& opened);

}  // namespace memwall
