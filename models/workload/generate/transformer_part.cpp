// What a rank of a parallel job runs of a decoder.
#include <algorithm>
#include <utility>

#include "models/workload/generate/operators/async_columns.h"
#include "models/workload/generate/operators/float8_parallel.h"
#include "models/workload/generate/operators/operators.h"
#include "models/workload/generate/operators/operators_fp8.h"
#include "models/workload/generate/operators/parallel_adapter.h"
#include "models/workload/generate/transformer.h"

namespace memwall {

Shape Transformer::message_shape() const {
  const bool by_tokens = part_.tensor && part_.tensor->by_tokens();
  return {recipe_.batch, by_tokens ? sequence_ / split_ : sequence_, model_.width};
}

SecondRun Transformer::second_run() const {
  const bool megatrons = part_.tensor && recipe_.parallel.framework != ParallelFramework::torchtitan;
  return megatrons ? SecondRun::whole : SecondRun::stops_early;  // DeepSpeed's CheckpointFunction is Megatron-LM's
}

Tensor Transformer::split_product(const Projection& projection, const Tensor& x) {
  const Tensor bias = projection.bias ? projection.bias->value : Tensor();
  if (recipe_.precision == Precision::fp8 && projection.weight != head_.weight) {
    if (!part_.tensor->by_tokens()) return linear_fp8(tape_, x, projection.weight->value, bias);
    if (projection.split == Split::column) return products_together(x, {&projection})[0];
    const Tensor y = float8_row(tape_, *part_.tensor, x, projection.weight->value);
    return bias ? add(tape_, y, bias) : y;
  }
  if (projection.split == Split::shared_column) return linear(tape_, x, projection.weight->value, bias);
  const bool whole_messages = of_head_ && &projection == &head_;
  TensorParallel& parallel = whole_messages ? *of_head_ : *part_.tensor;
  if (projection.split == Split::column && joins_columns())
    return column_linear(tape_, parallel, x, projection.weight->value, bias);
  // DTensor's ColwiseParallel: what it gathers autograd keeps, and backward reduces behind both products.
  if (projection.split == Split::column && parallel.overlaps() && !whole_messages)
    return products_together(x, {&projection}).front();
  if (projection.split == Split::column)
    return linear(tape_, shared_input(tape_, parallel, x), projection.weight->value, bias);
  const Tensor y = row_linear(tape_, *part_.tensor, x, projection.weight->value);
  return bias ? add(tape_, y, bias) : y;
}

// A column's pair reads all tokens, which are gathered for it alone (tp_comm_overlap; without it Megatron-Bridge
// gathers once for both, in 16 bits).
Tensor Transformer::split_adapted(const Projection& projection, const Tensor& x, Tensor y) {
  TensorParallel& parallel = *part_.tensor;
  const bool column = projection.split == Split::column;
  Tensor part = column ? shared_input(tape_, parallel, x) : x;
  {
    const ModuleScope scope(tape_, "lora_a");
    part = linear(tape_, part, projection.down->value);
    part = column ? gathered_features(tape_, parallel, part) : summed_features(tape_, parallel, part);
  }
  {
    const ModuleScope scope(tape_, "lora_b");
    part = linear(tape_, copied_features(tape_, parallel, part), projection.up->value);
    if (!column) part = features_of_tokens(tape_, parallel, part);
  }
  part = mul_number(tape_, part);
  return add(tape_, y, part);
}

Tensor Transformer::input_of_columns(const Tensor& x) {
  return part_.tensor && !joins_columns() ? shared_input(tape_, *part_.tensor, x) : x;
}

Tensors Transformer::products_together(const Tensor& x, std::initializer_list<const Projection*> projections) {
  std::vector<const Tensor*> weights;
  for (const Projection* projection : projections) weights.push_back(&projection->weight->value);
  TensorParallel& parallel = *part_.tensor;
  Tensors results = recipe_.precision == Precision::fp8 ? float8_columns(tape_, parallel, x, weights)
                                                        : columns_beside_gather(tape_, parallel, x, weights);
  Tensor* result = results.data();
  for (const Projection* projection : projections) {
    if (projection->bias) *result = add(tape_, *result, projection->bias->value);
    ++result;
  }
  return results;
}

// Where positions are learned all tokens are summed over ranks first, and each rank keeps its own of them (Megatron-LM,
// LanguageModelEmbedding.forward).
Tensor Transformer::part_embedding() {
  about_to_run(-1);
  TensorParallel& parallel = *part_.tensor;
  const bool scattered = parallel.by_tokens() && !positions_;
  Tensor x;
  {
    const ModuleScope scope(tape_, "words");
    x = vocabulary_embedding(tape_, parallel, words_->value, input_);
    x = summed_embedding(tape_, parallel, x, scattered);
  }
  if (model_.scaled_embedding) x = mul_number(tape_, x);
  if (positions_) {
    Tensor places = fill(tape_, "aten::arange", {sequence_}, DataType::int64);
    Tensor rows;
    {
      const ModuleScope scope(tape_, "positions");
      rows = embedding(tape_, positions_->value, places);
    }
    places.reset();
    x = add(tape_, x, rows);
  }
  if (parallel.by_tokens() && !scattered) x = own_tokens(tape_, parallel, x);
  return drop("dropout", x);
}

Tensor Transformer::part_layers(Tensor x) {
  Rotation rotation;
  if (model_.positions == Positions::rotary) rotation = model_.rotary_in_fp32 ? kept_rotation() : make_rotation();
  const bool full = recipe_.checkpoint == ActivationCheckpoint::full;
  const bool block = recipe_.parallel.checkpoint_method == CheckpointMethod::block;
  const auto count = static_cast<std::int64_t>(layers_.size()), step = recipe_.parallel.checkpoint_layers;
  const auto run = [this, rotation](const Tensor& given, std::int64_t from, std::int64_t to) {
    Tensor y = given;
    for (std::int64_t i = from; i < to; ++i) {
      about_to_run(part_.first_layer + i);
      y = run_whole_layer(layers_[static_cast<std::size_t>(i)], y, rotation);
    }
    return y;
  };
  x = begin_fp8_pass(x);
  for (std::int64_t i = 0; i < count;) {
    const bool again = full && (!block || i < step);
    const std::int64_t next = std::min(count, again && !block ? i + step : i + 1);
    x = again ? checkpoint(
                    tape_, x, [run, i, next](const Tensor& given) { return run(given, i, next); }, second_run())
              : run(x, i, next);
    i = next;
  }
  end_fp8_pass();
  return x;
}

Tensor Transformer::part_loss(Tensor x) {
  about_to_run(-2);
  x = normalize(norm_, x);
  Tensor logits = project(head_, x);
  x.reset();
  if (model_.logit_softcapping) logits = softcapped(tape_, std::move(logits));
  return loss_of(std::move(logits), targets_);
}

Tensor Transformer::run_part(Tensor received, const Tensor& words, const Tensor& targets) {
  input_ = words;
  targets_ = targets;
  Tensor x = part_.embedding ? part_embedding() : std::move(received);
  x = part_layers(std::move(x));
  if (part_.loss) x = part_loss(std::move(x));
  input_.reset();
  targets_.reset();
  return x;
}

}  // namespace memwall
