// Binomial checkpointing: how a chain of equal steps is reversed with few checkpoints and the fewest forward steps.
// revolve.cpp names the paper.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policies/planners/rotor_chain.h"

namespace memwall {

// The fewest forward steps that reverse `steps` steps with `slots` checkpoints, the first state among them: those that
// advance from a checkpoint, and not the one right before a step's own backward. In closed form. 0 of no steps.
// REQUIRES: slots >= 1.
std::uint64_t revolve_reruns(std::uint64_t steps, std::uint64_t slots);

// A schedule with as many: forward steps, and per stage, the last first, a forward that saves and its backward. The
// state before stage `first` is there, and stays until its backward. REQUIRES: slots >= 1.
std::vector<RotorStep> revolve_steps(std::size_t first, std::size_t steps, std::size_t slots);

}  // namespace memwall
