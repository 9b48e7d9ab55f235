// Families of Hugging Face's transformers from words to loss (Model::modules): embedding, positions, masks, layers.
// What their frames hold is let go of in the order in which Python clears them.
#include <utility>

#include "models/workload/generate/operators/operators.h"
#include "models/workload/generate/operators/untracked_kernel.h"
#include "models/workload/generate/transformer.h"

namespace memwall {
namespace {

Tensor plus_number(Tape& tape, const Tensor& x, const char* name = "aten::add") {
  return untracked(tape, {name, OperatorClass::elementwise, x.type}, {&x}, x.shape, x.type);
}

}  // namespace

// torch.arange(length) + past_seen_tokens
Tensor Transformer::counted_places() {
  const Tensor counted = fill(tape_, "aten::arange", {sequence_}, DataType::int64);
  return plus_number(tape_, counted);
}

// modeling_opt.py: counted by a mask of ones, which the frame keeps.
Tensor Transformer::opt_places(Tensor& ones) {
  const Shape shape{recipe_.batch, sequence_};
  ones = fill(tape_, "aten::ones", shape, DataType::fp32);
  const Tensor sum =
      untracked(tape_, {"aten::cumsum", OperatorClass::reduction, DataType::fp32}, {&ones}, shape, DataType::fp32);
  Tensor product = elementwise(tape_, "aten::mul", {&sum, &ones}, shape, DataType::fp32);
  const Tensor shifted = plus_number(tape_, product, "aten::sub");
  product.reset();
  return cast(tape_, shifted, DataType::int64);
}

// modeling_roberta.py, create_position_ids_from_input_ids: words that are no padding are counted.
Tensor Transformer::roberta_places() {
  const Shape shape = input_.shape;
  Tensor real = untracked(tape_, {"aten::ne"}, {&input_}, shape, DataType::boolean);
  Tensor mask =
      untracked(tape_, {"aten::_to_copy", OperatorClass::memory, DataType::boolean}, {&real}, shape, DataType::int32);
  real.reset();
  Tensor sum =
      untracked(tape_, {"aten::cumsum", OperatorClass::reduction, DataType::int32}, {&mask}, shape, DataType::int64);
  Tensor low = untracked(tape_, {"aten::_to_copy", OperatorClass::memory}, {&sum}, shape, DataType::int32);
  sum.reset();
  Tensor shifted = plus_number(tape_, low);
  low.reset();
  Tensor product = untracked(tape_, {"aten::mul", OperatorClass::elementwise, DataType::int32}, {&shifted, &mask},
                             shape, DataType::int32);
  shifted.reset();
  Tensor wide =
      untracked(tape_, {"aten::_to_copy", OperatorClass::memory, DataType::int32}, {&product}, shape, DataType::int64);
  Tensor places = plus_number(tape_, wide);
  for (Tensor* t : {&wide, &mask, &product}) t->reset();
  return places;
}

// masking_utils.py, sdpa_mask: which tokens each sees. `window`: 0: all before it.
Tensor Transformer::seen_tokens(std::int64_t window) {
  const std::int64_t s = sequence_;
  const Shape whole{1, 1, s, s};
  constexpr auto kBoolean = DataType::boolean;
  Tensor batches = fill(tape_, "aten::arange", {recipe_.batch}, DataType::int64);
  Tensor heads = fill(tape_, "aten::arange", {1}, DataType::int64);
  Tensor column = tape_.view(counted_places(), {1, 1, s, 1}, {s, s, 1, 1});
  Tensor row = tape_.view(counted_places(), {1, 1, 1, s}, {s, s, s, 1});
  Tensor near;
  if (window != 0) {
    Tensor ones = fill(tape_, "aten::new_ones", {}, kBoolean);
    Tensor last = plus_number(tape_, column, "aten::sub");
    Tensor after = untracked(tape_, {"aten::gt"}, {&row, &last}, whole, kBoolean);
    last.reset();
    near =
        untracked(tape_, {"aten::bitwise_and", OperatorClass::elementwise, kBoolean}, {&ones, &after}, whole, kBoolean);
    after.reset();
  }
  Tensor seen = untracked(tape_, {"aten::le"}, {&row, &column}, whole, kBoolean);
  if (near) {
    Tensor both =
        untracked(tape_, {"aten::bitwise_and", OperatorClass::elementwise, kBoolean}, {&near, &seen}, whole, kBoolean);
    seen.reset();
    near.reset();
    seen = std::move(both);
  }
  for (Tensor* t : {&batches, &heads, &column, &row}) t->reset();
  return tape_.view(seen, {recipe_.batch, 1, s, s}, {0, s * s, s, 1});
}

// eager_mask: zeros where attention looks, the least number elsewhere; one for all heads.
Tensor Transformer::causal_mask(std::int64_t window) {
  const NoGradientScope no_gradient(tape_);
  Tensor seen = seen_tokens(window);
  Tensor zero = fill(tape_, "aten::zeros", {}, type_), least = fill(tape_, "aten::scalar_tensor", {}, type_);
  Tensor mask =
      untracked(tape_, {"aten::where", OperatorClass::elementwise, type_}, {&seen, &zero, &least}, seen.shape, type_);
  for (Tensor* t : {&least, &zero, &seen}) t->reset();
  return mask;
}

Tensor Transformer::embedded(const char* name, const Parameter& table, const Tensor& rows) {
  const ModuleScope scope(tape_, name);
  return embedding(tape_, table.value, rows);
}

// From words to what the output layer reads.
Tensor Transformer::family_decoder_output() {
  Tensor x = embedded("words", *words_, input_);
  if (embedding_scale_) x = mul(tape_, x, embedding_scale_);
  Tensor words = x, places, rows, ones, slopes;
  if (model_.modules == Modules::bloom) x = normalize(embedding_norm_, x);
  LayerInputs inputs;
  if (model_.positions == Positions::alibi) inputs.alibi = alibi_of_positions(slopes);
  if (model_.positions == Positions::learned) {
    places = opt_places(ones);
  } else if (model_.positions == Positions::rotary) {
    places = counted_places();
  }
  if (recipe_.attention == Attention::plain) {
    bool any_full = false, any_local = false;
    for (const Layer& layer : layers_) (layer.has_window ? any_local : any_full) = true;
    const bool both = model_.full_attention_every != 0;  // the classes make both kinds
    if (any_full || both) inputs.mask = causal_mask(0);
    if (any_local || both) inputs.local_mask = causal_mask(model_.sliding_window);
  }
  if (positions_) {
    rows = embedded("positions", *positions_, plus_number(tape_, places));
    x = add(tape_, x, rows);
  }
  if (!model_.residual_dropout_only && model_.modules != Modules::bloom) x = drop("dropout", x);
  if (model_.modules == Modules::phi) words = x;
  if (rotary_rates_) inputs.rotation = family_rotation(places, rotary_rates_);
  if (local_rotary_rates_) inputs.local_rotation = family_rotation(places, local_rotary_rates_);
  inputs.places = places;
  for (const Layer& l : layers_) x = run_family_layer(l, x, inputs);
  inputs.places.reset();
  x = normalize(norm_, x);
  if (model_.layer_order == LayerOrder::sandwich_norm)  // in the order in which Python clears the frame
    for (Tensor* t : {&inputs.mask, &inputs.local_mask, &words, &places}) t->reset();
  else if (positions_)
    for (Tensor* t : {&words, &places, &ones, &inputs.mask, &rows}) t->reset();
  else
    for (Tensor* t : {&places, &words, &slopes, &inputs.alibi}) t->reset();
  return x;
}

Tensor Transformer::family_decoder_loss() {
  if (offload_) tape_.hooks.push_back(offload_.get());
  Tensor x = family_decoder_output();
  if (offload_) tape_.hooks.pop_back();
  return loss_of_last(std::move(x));
}

// RoBERTa: types before positions; DistilBERT has positions alone.
Tensor Transformer::family_encoder_words() {
  Tensor places, types;
  if (model_.modules == Modules::roberta) {
    places = roberta_places();
    const Tensor numbers = tape_.view(kept_types_, {recipe_.batch, position_rows(model_)}, {0, 1});
    const Bytes moved = 2 * input_.bytes() + places.bytes();
    types = untracked(tape_, {"aten::gather", OperatorClass::memory, DataType::int64, moved}, {&numbers, &places},
                      input_.shape, DataType::int64);
  } else {
    places = tape_.view(kept_places_, {1, sequence_}, {position_rows(model_), 1});
  }
  Tensor words = embedded("words", *words_, input_), kinds, x = words;
  if (types_) {
    kinds = embedded("types", *types_, types);
    x = add(tape_, x, kinds);
  }
  Tensor rows = embedded("positions", *positions_, places);
  x = add(tape_, x, rows);
  x = normalize(norm_, x);
  x = drop("dropout", x);
  for (Tensor* t : {&places, &types, &words, &kinds, &rows}) t->reset();
  return x;
}

Tensor Transformer::family_encoder_loss() {
  Tensor x = family_encoder_words(), words = x;
  for (const Layer& l : layers_) x = run_family_layer(l, x, {});
  words.reset();
  Tensor part = project(transform_, x);
  part = gelu(tape_, part);
  part = normalize(transform_norm_, part);
  part = project(head_, part);
  x.reset();
  if (recipe_.loss_in_fp32 && !tape_.autocast) part = cast(tape_, part, DataType::fp32);
  return loss_of(std::move(part), targets_);
}

}  // namespace memwall
