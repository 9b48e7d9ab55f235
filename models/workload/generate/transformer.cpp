// The forward pass of transformers. Local variables go where Python's go: what is freed when follows from that.
#include "models/workload/generate/transformer.h"

#include <algorithm>
#include <utility>

#include "models/workload/generate/native/compiled_kernels.h"
#include "models/workload/generate/operators/checkpoint.h"
#include "models/workload/generate/operators/loss_parallel.h"
#include "models/workload/generate/operators/operators.h"
#include "models/workload/generate/operators/operators_fp8.h"
#include "models/workload/generate/operators/operators_fused.h"
#include "models/workload/generate/operators/operators_gptq.h"
#include "models/workload/generate/operators/operators_image.h"
#include "models/workload/generate/operators/operators_liger.h"
#include "models/workload/generate/operators/operators_nf4.h"

namespace memwall {

Transformer::Transformer(Tape& tape, const Model& model, const Recipe& recipe)
    : Transformer(tape, model, recipe, {0, model.layers}) {}

Transformer::Transformer(Tape& tape, const Model& model, const Recipe& recipe, const ModelPart& part)
    : tape_(tape),
      model_(model),
      recipe_(recipe),
      part_(part),
      split_(part.tensor ? part.tensor->group.ranks() : 1),
      sequence_(recipe.sequence ? recipe.sequence : model.longest),
      heads_(model.heads / split_),
      key_value_heads_(std::max<std::int64_t>(key_value_heads(model) / split_, 1)),
      head_size_(head_size(model)),
      type_(parameter_type(recipe.precision)),
      engine_{recipe.fp8_recipe, recipe.fp8_weight_cache, part.tensor} {
  if (part.tensor && part.tensor->overlap) of_head_.emplace(*part.tensor).overlap = false;
  if (model.architecture == Architecture::decoder) is_family() ? make_family_decoder() : make_decoder();
  if (model.architecture == Architecture::encoder) is_family() ? make_family_encoder() : make_encoder();
  if (model.architecture == Architecture::vision) {
    make_vision();
    input_ =
        tape.permanent("images", {recipe.batch, 3, model.image, model.image},
                       recipe.precision == Precision::fp32 || autocast_type(recipe) ? DataType::fp32 : type_,
                       StorageKind::input);
    targets_ = tape.permanent("targets", {recipe.batch}, DataType::int64, StorageKind::input);
    return;
  }
  if (recipe.activation_offload) offload_ = std::make_unique<ActivationOffload>(tape);
  tape.backward_ended.push_back([this] { returned_logits_.reset(); });
  if (model.positions == Positions::rotary && model.rotary_in_fp32) kept_rotation();
  if (part.tensor) return;  // each pass has words of its own
  input_ = tape.permanent("words", {recipe.batch, sequence_}, DataType::int64, StorageKind::input);
  targets_ = tape.permanent("targets", {recipe.batch, sequence_}, DataType::int64, StorageKind::input);
  if (model.architecture == Architecture::decoder && recipe.attention == Attention::plain && !recipe.fused_kernels &&
      !is_family())
    mask_ = tape.permanent("mask", {sequence_, sequence_}, DataType::boolean, StorageKind::parameter);  // a buffer
}

Tensor Transformer::loss() {
  if (is_family()) return model_.architecture == Architecture::encoder ? family_encoder_loss() : family_decoder_loss();
  switch (model_.architecture) {
    case Architecture::encoder:
      return encoder_loss();
    case Architecture::vision:
      return vision_loss();
    default:
      return decoder_loss();
  }
}

Tensor Transformer::normalize(const Norm& norm, const Tensor& x) {
  const ModuleScope scope(tape_, norm.name);
  if (is_normalized_in_fp8(norm))
    return normalization_in_fp8(tape_, x, norm.weight->value, norm.bias ? norm.bias->value : Tensor());
  switch (model_.normalization) {
    case Normalization::layer_norm:
      return layer_norm(tape_, x, norm.weight->value, norm.bias->value);
    case Normalization::rms_norm_in_fp32:
      return rms_norm_in_fp32(tape_, x, norm.weight->value);
    case Normalization::rms_norm_zero_centered:
      return rms_norm_zero_centered(tape_, x, norm.weight->value);
    case Normalization::rms_norm:
    case Normalization::rms_norm_in_parts:
      break;
  }
  if (recipe_.liger_kernels) return rms_norm_liger(tape_, x, norm.weight->value);
  if (model_.normalization == Normalization::rms_norm) return rms_norm(tape_, x, norm.weight->value);
  return rms_norm_in_parts(tape_, x, norm.weight->value);
}

Tensor Transformer::project(const Projection& projection, const Tensor& x) {
  const ModuleScope scope(tape_, projection.name);
  if (projection.fp8) return fp8_product(projection, x);
  if (projection.split != Split::none) {
    Tensor y = split_product(projection, x);
    return projection.down ? adapted(projection, x, std::move(y)) : y;
  }
  if (!projection.tiles.empty()) return tiled(projection, x);
  const Tensor bias = projection.bias ? projection.bias->value : Tensor();
  if (recipe_.precision == Precision::fp8 && projection.weight != head_.weight)
    return linear_fp8(tape_, x, projection.weight->value, bias);
  Tensor y =
      projection.packed_outputs > 0 ? packed_product(projection, x) : linear(tape_, x, projection.weight->value, bias);
  return projection.down ? adapted(projection, x, std::move(y)) : y;
}

Tensor Transformer::packed_product(const Projection& projection, const Tensor& x) {
  if (recipe_.weights_in_nf4)
    return linear_nf4(tape_, x, {projection.weight->value, projection.scales}, projection.packed_outputs);
  Tensor y = linear_gptq(tape_, x, projection.weight->value, projection.packed_outputs);
  return projection.bias ? add(tape_, y, projection.bias->value) : y;
}

// y + scale * up(down(dropout(x)))
// In fp32: x.to(lora_A.weight.dtype), before the dropout (PEFT); products are autocast's.
Tensor Transformer::adapted(const Projection& projection, const Tensor& x, Tensor y) {
  if (part_.tensor) return split_adapted(projection, x, std::move(y));
  Tensor part;
  {
    const ModuleScope scope(tape_, "lora_dropout");
    part = recipe_.lora_in_fp32 ? cast(tape_, x, DataType::fp32) : x;
    part = dropout(tape_, part, recipe_.lora_dropout);
  }
  {
    const ModuleScope scope(tape_, "lora_a");
    part = linear(tape_, part, projection.down->value);
  }
  {
    const ModuleScope scope(tape_, "lora_b");
    part = linear(tape_, part, projection.up->value);
  }
  part = mul_number(tape_, part);
  return add(tape_, y, part);
}

Tensor Transformer::drop(const std::string& name, const Tensor& x) {
  const ModuleScope scope(tape_, name);
  return dropout(tape_, x, model_.dropout);
}

// x = x + dropout(attention(norm(x))); x = x + mlp(norm(x)); of sandwich_norm a norm behind each part, too.
Tensor Transformer::run_norm_first(const Layer& layer, Tensor x, const Rotation& rotation) {
  Tensor part = normalize(layer.norm1, x);
  part = attention(layer, part, rotation);
  if (layer.attention_result.weight) part = normalize(layer.attention_result, part);
  part = drop("dropout1", part);
  x = add(tape_, x, part);
  part.reset();
  part = normalize(layer.norm2, x);
  part = mlp(layer, part);
  if (layer.mlp_result.weight) part = normalize(layer.mlp_result, part);
  Tensor sum = add(tape_, x, part);
  part.reset();
  x.reset();
  return sum;
}

// x = norm(x + dropout(attention(x))); x = norm(x + mlp(x))
Tensor Transformer::run_norm_last(const Layer& layer, Tensor x) {
  Tensor part = attention(layer, x, {});
  part = drop("dropout1", part);
  Tensor sum = add(tape_, x, part);
  part.reset();
  x = normalize(layer.norm1, sum);
  sum.reset();
  part = mlp(layer, x);
  sum = add(tape_, x, part);
  part.reset();
  Tensor result = normalize(layer.norm2, sum);
  sum.reset();
  x.reset();
  return result;
}

// Megatron-LM: biases are added by the kernel behind the product.
Tensor Transformer::run_fused_layer(const Layer& layer, Tensor x) {
  Tensor part = normalize(layer.norm1, x);
  part = attention(layer, part, {});
  x = bias_dropout_add(tape_, part, layer.out.bias->value, x, model_.dropout);
  part.reset();
  part = normalize(layer.norm2, x);
  const FeedForward& mlp = layer.mlps.front();
  part = project({mlp.up.name, mlp.up.weight, nullptr, mlp.up.split}, part);
  part = bias_gelu(tape_, part, mlp.up.bias->value);
  part = project({mlp.down.name, mlp.down.weight, nullptr, mlp.down.split}, part);
  Tensor sum = bias_dropout_add(tape_, part, mlp.down.bias->value, x, model_.dropout);
  part.reset();
  x.reset();
  return sum;
}

Tensor Transformer::run_layer(const Layer& layer, const Tensor& x, const Rotation& rotation) {
  if (recipe_.checkpoint != ActivationCheckpoint::full) return run_whole_layer(layer, x, rotation);
  return checkpoint(tape_, x,
                    [this, &layer, rotation](const Tensor& input) { return run_whole_layer(layer, input, rotation); });
}

CompiledLayerPlan Transformer::plan_of(const Layer& layer) const {
  CompiledLayerPlan plan;
  const auto projection = [](const Projection& p) {
    return CompiledProjection{p.weight, p.bias, p.down, p.up, p.packed_outputs, p.packed_inputs, p.scales};
  };
  plan.rms = model_.normalization != Normalization::layer_norm;
  plan.rotary = model_.positions == Positions::rotary;
  plan.expanded_key_value = model_.expanded_key_value;
  plan.dropout = model_.dropout > 0;
  plan.fp8 = recipe_.precision == Precision::fp8;
  plan.heads = heads_;
  plan.key_value_heads = key_value_heads_;
  plan.attention = attention_kernel(recipe_.attention);
  plan.head_size = head_size_;
  plan.norm1 = layer.norm1.weight, plan.norm1_bias = layer.norm1.bias;
  plan.norm2 = layer.norm2.weight, plan.norm2_bias = layer.norm2.bias;
  plan.qkv = projection(layer.qkv);
  plan.q = projection(layer.q), plan.k = projection(layer.k), plan.v = projection(layer.v);
  plan.out = projection(layer.out);
  const FeedForward& mlp = layer.mlps.front();
  plan.gate = projection(mlp.gate), plan.up = projection(mlp.up), plan.down = projection(mlp.down);
  return plan;
}

Tensor Transformer::run_whole_layer(const Layer& layer, const Tensor& x, const Rotation& rotation) {
  const ModuleScope scope(tape_, layer.name);
  if (recipe_.execution == ExecutionMode::compiled) return compiled_layer(tape_, plan_of(layer), x, rotation.cosine);
  if (recipe_.fused_kernels) return run_fused_layer(layer, x);
  return model_.architecture == Architecture::encoder ? run_norm_last(layer, x) : run_norm_first(layer, x, rotation);
}

Tensor Transformer::embedded_words() {
  Tensor x;
  {
    const ModuleScope scope(tape_, "words");
    x = embedding(tape_, words_->value, input_);
  }
  if (!positions_) return x;
  Tensor places = fill(tape_, "aten::arange", {sequence_}, DataType::int64);
  Tensor rows;
  {
    const ModuleScope scope(tape_, "positions");
    rows = embedding(tape_, positions_->value, places);
  }
  places.reset();
  Tensor sum = add(tape_, x, rows);
  x.reset();
  return sum;
}

// torchtune's chunked output: all pieces of the logits are made first, then the loss of one piece after the other.
Tensor Transformer::chunked_loss(Tensor x) {
  const std::int64_t chunks = recipe_.loss_chunks;
  std::vector<Tensor> logits, targets;
  const auto piece = [&](const Tensor& whole, std::int64_t i) {  // Tensor.tensor_split: what is left over goes first
    const std::int64_t size = sequence_ / chunks + (i < sequence_ % chunks ? 1 : 0);
    return narrow(tape_, whole, 1, i * (sequence_ / chunks) + std::min(i, sequence_ % chunks), size);
  };
  std::vector<Tensor> pieces;
  for (std::int64_t i = 0; i < chunks; ++i) pieces.push_back(piece(x, i));
  for (const Tensor& one : pieces) logits.push_back(project(head_, one));
  pieces.clear();
  x.reset();
  for (std::int64_t i = 0; i < chunks; ++i) {
    const Tensor labels = piece(targets_, i);
    targets.push_back(reshape(tape_, labels, {labels.elements()}));
  }
  Tensor total;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    Tensor loss = loss_of(logits[i], targets[i]);
    total = total ? add_to(tape_, total, loss) : add_number(tape_, loss);  // total += loss
  }
  return div_number(tape_, total);
}

Tensor Transformer::loss_of(Tensor logits, const Tensor& targets) {
  if (recipe_.parallel.cross_entropy_loss_fusion && part_.tensor)
    return fused_parallel_cross_entropy(tape_, *part_.tensor, logits, targets);
  const bool compiled = recipe_.execution == ExecutionMode::compiled && recipe_.compiled_loss;
  if (compiled && recipe_.loss_chunks > 1) return compiled_cross_entropy(tape_, std::move(logits), targets);
  if (recipe_.loss_in_fp32 && !tape_.autocast) logits = cast(tape_, logits, DataType::fp32);
  if (compiled) return compiled_cross_entropy(tape_, std::move(logits), targets);
  if (split_ > 1 && !joins_columns()) return loss_parallel(tape_, *part_.tensor, logits, targets);  // torchtitan's
  if (split_ > 1) return split_cross_entropy(tape_, *part_.tensor, logits, targets);
  if (recipe_.fused_kernels) return vocabulary_cross_entropy(tape_, logits, targets);
  return cross_entropy(tape_, logits, targets);
}

// What a model of Transformers does with labels: logits of all tokens but the last (a copy where there are several
// sequences), and the logits returned beside the loss.
Tensor Transformer::loss_beside_logits(Tensor logits) {
  if (recipe_.loss_in_fp32 && !tape_.autocast) logits = cast(tape_, logits, DataType::fp32);
  Tensor returned = recipe_.returned_logits == ReturnedLogits::none ? Tensor() : logits.detached();
  Tensor targets = targets_;
  if (recipe_.shifted_logits) {
    logits = contiguous(tape_, narrow(tape_, logits, 1, 0, sequence_ - 1));
    targets = contiguous(tape_, narrow(tape_, targets, 1, 1, sequence_ - 1));
  }
  Tensor loss = loss_of(std::move(logits), targets);
  if (tape_.autocast && returned) returned = cast(tape_, returned, DataType::fp32);
  if (recipe_.returned_logits == ReturnedLogits::backward) returned_logits_ = std::move(returned);
  return loss;
}

Tensor Transformer::decoder_loss() {
  if (offload_) tape_.hooks.push_back(offload_.get());
  Tensor x = embedded_words();
  x = drop("dropout", x);
  Rotation rotation;
  if (model_.positions == Positions::rotary) rotation = model_.rotary_in_fp32 ? kept_rotation() : make_rotation();
  x = begin_fp8_pass(x);
  for (const Layer& l : layers_) x = run_layer(l, x, rotation);
  end_fp8_pass();
  Tensor last = normalize(norm_, x);
  if (offload_) tape_.hooks.pop_back();  // the output layer and the loss keep theirs
  const bool in_pieces = recipe_.loss_chunks > 1 || recipe_.fused_linear_loss;
  if (in_pieces) x.reset();  // else until the loss is there
  return loss_of_last(std::move(last));
}

// The output layer and the loss of what the last normalization gives.
Tensor Transformer::loss_of_last(Tensor last) {
  if (recipe_.loss_chunks > 1) return chunked_loss(std::move(last));
  if (recipe_.fused_linear_loss) {
    const ModuleScope scope(tape_, head_.name);
    return fused_linear_cross_entropy(tape_, last, head_.weight->value, targets_);
  }
  Tensor logits = project(head_, last);
  if (model_.logit_softcapping) logits = softcapped(tape_, std::move(logits));
  last.reset();
  return loss_beside_logits(std::move(logits));
}

Tensor Transformer::encoder_loss() {
  Tensor x = embedded_words();
  {
    Tensor kinds = fill(tape_, "aten::zeros_like", input_.shape, DataType::int64);
    Tensor rows;
    {
      const ModuleScope scope(tape_, "types");
      rows = embedding(tape_, types_->value, kinds);
    }
    kinds.reset();
    Tensor sum = add(tape_, x, rows);
    rows.reset();
    sum = normalize(norm_, sum);
    x = drop("dropout", sum);
  }
  x = begin_fp8_pass(x);
  for (const Layer& l : layers_) x = run_layer(l, x, {});
  end_fp8_pass();
  Tensor part = project(transform_, x);
  part = gelu(tape_, part);
  Tensor normalized = normalize(transform_norm_, part);
  part.reset();
  x = std::move(normalized);
  return loss_of(project(head_, x), targets_);
}

// A class token before the patches; the class is told by what becomes of it.
Tensor Transformer::vision_loss() {
  Tensor x;
  {
    const ModuleScope scope(tape_, "patches");
    x = convolution(tape_, input_, patches_.weight->value, patches_.bias->value, model_.patch, 0);
  }
  const std::int64_t patches = x.shape[2] * x.shape[3];
  x = transpose(tape_, reshape(tape_, x, {recipe_.batch, model_.width, patches}), 1, 2);
  Tensor token = expand(tape_, token_->value, {recipe_.batch, 1, model_.width});
  Tensors parts{cast(tape_, token, x.type), x};
  Tensor all = cat(tape_, parts, 1);
  parts.clear();
  Tensor placed = add(tape_, all, positions_->value);
  all.reset();
  x = std::move(placed);
  x = begin_fp8_pass(x);
  for (const Layer& l : layers_) x = run_layer(l, x, {});
  end_fp8_pass();
  Tensor first = normalize(norm_, select(tape_, x, 1));
  Tensor logits = project(head_, first);
  first.reset();
  return cross_entropy(tape_, logits, targets_);
}

std::unique_ptr<Network> make_transformer(Tape& tape, const Model& model, const Recipe& recipe) {
  return std::make_unique<Transformer>(tape, model, recipe);
}

}  // namespace memwall
