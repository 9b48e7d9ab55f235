// A training step as llm.c runs it (train_gpt2.cu): one program in C++ that allocates everything before the first
// step and launches a fixed list of kernels. GPT-2's architecture, bf16 with fp32 main parameters, cuDNN's attention,
// the residual stream and normalization in one kernel, a classifier that writes the gradient over the logits. Over
// data-parallel ranks gradients are reduce-scattered per layer, each rank updates its share (ZeRO stage 1) and the
// parameters are gathered again.
#pragma once

#include "models/workload/generate/configuration/model.h"
#include "models/workload/generate/configuration/recipe.h"
#include "sim/trace/trace.h"

namespace memwall {

// Throws UsageError naming the setting that llm.c has not.
Trace native_step(const Model& model, const Recipe& recipe);

}  // namespace memwall
