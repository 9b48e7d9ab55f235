#include "models/workload/generate/training_step.h"

#include "models/workload/generate/operators.h"
#include "models/workload/generate/optimizer_step.h"

namespace memwall {
namespace {

Tensor forward(Tape& tape, Network& network, const Recipe& recipe) {
  const AutocastScope autocast(tape, autocast_type(recipe.precision));
  return network.loss();
}

}  // namespace

void training_step(Tape& tape, Network& network, const Recipe& recipe) {
  Tensor loss;
  for (std::int64_t i = 0; i < recipe.accumulation; ++i) {
    tape.phase = Phase::forward;
    loss = forward(tape, network, recipe);
    if (recipe.accumulation > 1) loss = div_number(tape, loss);
    tape.backward(loss);
  }
  tape.phase = Phase::optimizer;
  optimizer_step(tape, recipe);
  zero_gradients(tape, recipe);
}

}  // namespace memwall
