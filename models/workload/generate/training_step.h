// What the training program does in one step, around the network.
#pragma once

#include "models/workload/generate/gradient_reduction.h"
#include "models/workload/generate/gradient_scaler.h"
#include "models/workload/generate/network.h"

namespace memwall {

// Forward, loss and backward, as often as gradients are accumulated, then the update and zero_grad.
void training_step(Tape& tape, Network& network, const Recipe& recipe, GradientScaler& scaler,
                   GradientReduction& reduction);

}  // namespace memwall
