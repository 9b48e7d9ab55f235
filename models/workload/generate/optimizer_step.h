// What the program does after backward: the optimizer's update, and zero_grad.
#pragma once

#include "models/workload/generate/recipe.h"
#include "models/workload/generate/tape.h"

namespace memwall {

// Makes the optimizer's states of every parameter that is trained (preexisting storages). Before begin_step().
void make_optimizer_states(Tape& tape, const Recipe& recipe);

// optimizer.step(). The parameters' gradients must be there.
void optimizer_step(Tape& tape, const Recipe& recipe);

// optimizer.zero_grad(): frees the gradients, or fills them with zeros.
void zero_gradients(Tape& tape, const Recipe& recipe);

}  // namespace memwall
