// Linear layers as grids of tiles: deepspeed.zero.TiledLinear. Source: deepspeedai/DeepSpeed, deepspeed/runtime/zero/
// tiling.py; Megatron-DeepSpeed, megatron/arguments.py (--tile-factor); Rajbhandari et al. 2021, "ZeRO-Infinity",
// section 5.1.3 (memory-centric tiling). Which operators it runs was read off PyTorch 2.15, on the CPU.
#include <fmt/format.h>

#include "models/workload/generate/operators/operators.h"
#include "models/workload/generate/transformer.h"

namespace memwall {

// All that belongs to one output follows each other; its last tile has the bias. REQUIRES: the size of a tile divides
// both sizes (workload_limits.cpp).
Transformer::Projection Transformer::make_tiled(const std::string& prefix, const std::string& name, std::int64_t inputs,
                                                std::int64_t outputs, bool bias) {
  const std::int64_t size = model_.width / recipe_.tile_factor, out_splits = outputs / size;
  Projection p;
  p.name = name;
  p.in_splits = inputs / size;
  for (std::int64_t out = 0; out < out_splits; ++out)
    for (std::int64_t in = 0; in < p.in_splits; ++in) {
      const std::string tile = fmt::format("{}{}.linears.{}.{}.", prefix, name, out, in);
      p.tiles.push_back({parameter(tile + "weight", {size, size}),
                         bias && in + 1 == p.in_splits ? parameter(tile + "bias", {size}) : nullptr});
    }
  return p;
}

// A slice of the input is no contiguous tensor: its bias is added by an operator of its own (at::linear).
Tensor Transformer::product_of(const Tile& tile, const Tensor& x) {
  if (tile.bias == nullptr) return linear(tape_, x, tile.weight->value);
  if (x.contiguous()) return linear(tape_, x, tile.weight->value, tile.bias->value);
  const Tensor product = linear(tape_, x, tile.weight->value);
  return add(tape_, product, tile.bias->value);
}

// One tile after the other: the first of an output is cloned, the others are added to it. Then outputs are put
// together.
Tensor Transformer::tiled(const Projection& projection, const Tensor& x) {
  const std::int64_t size = model_.width / recipe_.tile_factor;
  const std::vector<std::int64_t> sizes(static_cast<std::size_t>(projection.in_splits), size);
  const Tensors inputs = projection.in_splits > 1 ? split(tape_, x, -1, sizes) : Tensors{x};
  Tensors outputs;
  Tensor local;  // Python's local variable holds the last product until the next one is there
  for (std::size_t number = 0; number < projection.tiles.size(); ++number) {
    const std::size_t in = number % inputs.size(), out = number / inputs.size();
    {
      const ModuleScope scope(tape_, fmt::format("linears.{}.{}", out, in));
      local = product_of(projection.tiles[number], inputs[in]);
    }
    if (in == 0)
      outputs.push_back(copy_of(tape_, local));
    else
      outputs.back() = add(tape_, outputs.back(), local);
  }
  return cat(tape_, outputs, -1);
}

}  // namespace memwall
