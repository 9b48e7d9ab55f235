#include "models/workload/generate/training_step.h"

#include "models/workload/generate/operators/operators.h"
#include "models/workload/generate/optimizer_step.h"

namespace memwall {
namespace {

void forward(Tape& tape, Network& network, const Recipe& recipe, Tensor& loss) {
  const AutocastScope autocast(tape, autocast_type(recipe));
  loss = network.loss();
}

}  // namespace

void training_step(Tape& tape, Network& network, const Recipe& recipe, GradientScaler& scaler,
                   GradientReduction& reduction) {
  Tensor loss;
  for (std::int64_t i = 0; i < recipe.accumulation; ++i) {
    tape.phase = Phase::forward;
    forward(tape, network, recipe, loss);
    if (recipe.accumulation > 1) loss = div_number(tape, loss);
    reduction.begin(i + 1 == recipe.accumulation);
    tape.backward(scaler.scaled(loss));
    reduction.end();
  }
  tape.phase = Phase::optimizer;
  optimizer_step(tape, recipe, scaler);
  zero_gradients(tape, recipe);
}

}  // namespace memwall
