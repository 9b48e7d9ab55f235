#include "models/workload/generate/generate.h"

#include <fmt/format.h>

#include "models/workload/generate/gradient_reduction.h"
#include "models/workload/generate/native_step.h"
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

void refuse(bool refused, const char* setting, const char* with) {
  if (refused) throw UsageError(fmt::format("`{}` is not implemented {}.", setting, with));
}

void require_implemented(const Model& model, const Recipe& recipe) {
  const bool words = model.architecture == Architecture::decoder || model.architecture == Architecture::encoder;
  const bool decoder = model.architecture == Architecture::decoder;
  const bool convolutional = model.architecture == Architecture::resnet || model.architecture == Architecture::vgg;
  refuse(recipe.precision == Precision::fp8, "precision: fp8", "by the generators");
  refuse(recipe.lora_rank != 0 && (!words || recipe.execution != ExecutionMode::eager || recipe.fused_kernels),
         "lora_rank", "but for transformers of words, run eagerly, without fused_kernels");
  refuse(recipe.activation_offload && !decoder, "activation_offload", "but for decoders");
  refuse(recipe.loss_chunks > 1 && !decoder, "loss_chunks", "but for decoders");
  refuse(recipe.checkpoint != ActivationCheckpoint::none && convolutional, "checkpoint", "but for transformers");
  refuse(recipe.fused_kernels &&
             (!decoder || model.normalization != Normalization::layer_norm || !model.bias ||
              model.activation == Activation::swiglu || model.experts != 0 || autocast_type(recipe.precision)),
         "fused_kernels", "but for GPT's layers (layer_norm, biases, gelu) without autocast");
  refuse(recipe.fused_kernels && recipe.execution != ExecutionMode::eager, "fused_kernels", "but for eager execution");
  refuse(recipe.execution == ExecutionMode::compiled &&
             (!decoder || model.experts != 0 || recipe.attention != Attention::flash || model.head_size % 8 != 0 ||
              autocast_type(recipe.precision)),
         "execution: compiled", "but for decoders without experts, with flash attention and without autocast");
  refuse(model.architecture == Architecture::vision && model.experts != 0, "experts", "but for decoders");
  refuse(model.architecture == Architecture::encoder && model.experts != 0, "experts", "but for decoders");
  refuse(words && model.positions == Positions::learned && recipe.sequence > model.longest, "sequence",
         "beyond the model's longest where positions are learned");
  refuse(recipe.loss_chunks > 1 && recipe.loss_chunks > (recipe.sequence ? recipe.sequence : model.longest),
         "loss_chunks", "beyond one per token");
}

}  // namespace

Trace generate_step(const Model& model, const Recipe& recipe) {
  require_implemented(model, recipe);
  if (recipe.execution == ExecutionMode::native) {
    Trace trace = native_step(model, recipe);
    count_samples(model, recipe, trace);
    return trace;
  }
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
