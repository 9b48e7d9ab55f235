// Linear layers of layers by Transformer Engine.
#include "models/workload/generate/transformer.h"

namespace memwall {

void Transformer::keep_in_fp8(Projection& projection, const std::string& name) {
  projection.fp8 = &fp8_weights_.emplace_back(make_fp8_weight(tape_, engine_, name, *projection.weight));
}

// LayerNormLinear is one module, whose normalization writes what its product reads, where one product reads it. With
// current scaling it can't, as the scale is not known; and LoRA's pairs read 16 bits.
bool Transformer::is_normalized_in_fp8(const Norm& norm) const {
  if (!by_transformer_engine() || recipe_.fp8_recipe != Fp8Recipe::delayed || recipe_.lora_rank != 0) return false;
  if (model_.architecture == Architecture::encoder || norm.weight == norm_.weight) return false;
  for (const Layer& layer : layers_) {
    if (norm.weight == layer.norm1.weight) return model_.joint_query_key_value;
    if (norm.weight == layer.norm2.weight) return layer.mlps.front().gate.weight == nullptr;
  }
  return false;
}

Tensor Transformer::fp8_product(const Projection& projection, const Tensor& x) {
  const Tensor bias = projection.bias ? projection.bias->value : Tensor();
  Tensor y;
  if (projection.split == Split::row) {
    y = fp8_linear(tape_, engine_, *projection.fp8, Fp8Split::row, x);
    if (bias) y = add(tape_, y, bias);
  } else {
    const Fp8Split split = projection.split == Split::column ? Fp8Split::column : Fp8Split::none;
    y = fp8_linear(tape_, engine_, *projection.fp8, split, x, bias);
  }
  return projection.down ? adapted(projection, x, std::move(y)) : y;
}

// The first module of a pass updates the scales of gradients when its backward is over.
Tensor Transformer::begin_fp8_pass(const Tensor& x) {
  if (!by_transformer_engine() || recipe_.fp8_recipe != Fp8Recipe::delayed || !x.requires_gradient()) return x;
  auto f = tape_.record({&x}, {}, [this](Tape& t, GradientFunction&, Tensors& g) {
    update_fp8_scales(t, engine_, static_cast<std::int64_t>(fp8_weights_.size()));
    return Tensors{g[0]};
  });
  Tensor same = x.detached();
  Tape::result(f, same);
  return same;
}

void Transformer::end_fp8_pass() {
  if (by_transformer_engine()) update_fp8_scales(tape_, engine_, static_cast<std::int64_t>(fp8_weights_.size()));
}

}  // namespace memwall
