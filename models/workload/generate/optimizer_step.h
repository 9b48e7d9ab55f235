// What the program does after backward: the optimizer's update, and zero_grad. Hyperparameters that decide which
// kernels run: AdamW with weight decay, Adam without, SGD with momentum 0.9 and without weight decay.
#pragma once

#include "models/workload/generate/gradient_scaler.h"
#include "models/workload/generate/configuration/recipe.h"
#include "models/workload/generate/operators/tape.h"

namespace memwall {

// Makes the optimizer's states of every parameter that is trained (preexisting storages), and its gradient where
// zero_grad keeps it; with optimizer_in_backward, has every parameter updated as soon as its gradient is there. Before
// begin_step(). `recipe` must outlive the tape's step. Throws UsageError where settings cannot be combined.
void make_optimizer_states(Tape& tape, const Recipe& recipe);

// optimizer.step(), nothing with optimizer_in_backward. The parameters' gradients must be there; they are unscaled
// first where they are scaled.
void optimizer_step(Tape& tape, const Recipe& recipe, GradientScaler& scaler);

// optimizer.zero_grad(): frees the gradients, or fills them with zeros.
void zero_gradients(Tape& tape, const Recipe& recipe);

// The gradients of what is trained, where they are there.
Tensors trained_gradients(Tape& tape);

}  // namespace memwall
