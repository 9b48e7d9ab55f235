#include "models/workload/generate/generate.h"

#include <fmt/format.h>

#include "models/workload/generate/gradient_reduction.h"
#include "models/workload/generate/network.h"
#include "models/workload/generate/optimizer_step.h"
#include "models/workload/generate/training_step.h"
#include "sim/error.h"

namespace memwall {

DataType parameter_type(Precision precision) {
  switch (precision) {
    case Precision::fp16:
      return DataType::fp16;
    case Precision::bf16:
    case Precision::fp8:
      return DataType::bf16;
    default:
      return DataType::fp32;
  }
}

std::optional<DataType> autocast_type(Precision precision) {
  if (precision == Precision::amp_fp16) return DataType::fp16;
  if (precision == Precision::amp_bf16) return DataType::bf16;
  return std::nullopt;
}

std::unique_ptr<Network> make_network(Tape& tape, const Model& model, const Recipe& recipe) {
  const bool convolutional = model.architecture == Architecture::resnet || model.architecture == Architecture::vgg;
  return convolutional ? make_convolutional_network(tape, model, recipe) : make_transformer(tape, model, recipe);
}

namespace {

// Of one rank.
void count_samples(const Model& model, const Recipe& recipe, Trace& trace) {
  trace.samples_per_step = static_cast<double>(recipe.batch) * static_cast<double>(recipe.accumulation);
  const bool words = model.architecture == Architecture::decoder || model.architecture == Architecture::encoder;
  if (words)
    trace.tokens_per_step =
        trace.samples_per_step * static_cast<double>(recipe.sequence ? recipe.sequence : model.longest);
}

}  // namespace

Trace generate_step(const Model& model, const Recipe& recipe) {
  Tape tape(model.name);
  tape.sums_in_place = recipe.sums_in_place;
  const std::unique_ptr<Network> network = make_network(tape, model, recipe);
  make_optimizer_states(tape, recipe);
  GradientScaler scaler(tape, recipe);
  const bool buckets = recipe.data_parallel > 1 && recipe.gradient_reduction == ReductionSchedule::overlapped;
  GradientReduction reduction(tape, recipe, buckets ? gradient_order(model, recipe) : std::vector<std::size_t>());
  tape.begin_step(model.name);
  training_step(tape, *network, recipe, scaler, reduction);
  Trace trace = std::move(tape).finish();
  count_samples(model, recipe, trace);
  return trace;
}

}  // namespace memwall
