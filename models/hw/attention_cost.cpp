#include "models/hw/attention_cost.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "models/hw/kernel_cost.h"

namespace memwall {
namespace {

constexpr double kBackwardProducts = 2.5;  // five products of this size against two
constexpr double kQueriesPerBlock = 128;   // as FlashAttention-2 cuts the queries

struct Extents {
  explicit Extents(const Shape& s)
      : batch(at(s, 0)), heads(at(s, 1)), queries(at(s, 3)), keys(at(s, 4)), head_size(at(s, 5)), causal(s[6] != 0) {}
  static double at(const Shape& s, std::size_t i) { return static_cast<double>(s[i]); }
  double batch, heads, queries, keys, head_size;
  bool causal;
};

// Query i of a causal mask sees keys - queries + i + 1 of them.
double pairs(const Extents& e) {
  if (!e.causal) return e.queries * e.keys;
  const double seen = std::min(e.queries, e.keys);
  return seen * e.keys - seen * (seen - 1) / 2;
}

// The last block of queries, and the last wave of blocks, are paid in full: 129 queries take what 256 of as many keys
// do.
double wave_share(const Gpu& gpu, const Extents& e) {
  const double blocks = e.queries / kQueriesPerBlock;
  const double waves = e.batch * e.heads * std::ceil(blocks) / gpu.multiprocessors;
  return waves / std::ceil(waves) * (blocks / std::ceil(blocks));
}

bool is_attention(const Op& op, const Shape& shape) {
  return op.operator_class == OperatorClass::attention && shape.size() == 7 && (shape[6] == 0 || shape[6] == 1) &&
         std::all_of(shape.begin(), shape.end() - 1, [](std::int64_t extent) { return extent > 0; });
}

}  // namespace

bool prices_attention(const Gpu& gpu, const Op& op, const Shape& shape) {
  return !gpu.attention.forward.points.empty() && gpu.multiprocessors > 0 && is_attention(op, shape);
}

double performed_flops(const Op& op, const Shape& shape) {
  if (op.flops <= 0 || !is_attention(op, shape)) return op.flops;
  return std::min(op.flops, attention_flops(shape) * (op.phase == Phase::backward ? kBackwardProducts : 1));
}

double attention_flops(const Shape& shape) {
  const Extents e(shape);
  return 4 * e.batch * e.heads * pairs(e) * e.head_size;
}

double attention_seconds(const Machine& machine, const Op& op, const Shape& shape) {
  assert(prices_attention(machine.gpu, op, shape));
  const AttentionCost& cost = machine.gpu.attention;
  const Extents e(shape);
  const bool backward = op.phase == Phase::backward;
  const double share = cost.forward.at(e.head_size * element_bytes(op.data_type)) * (backward ? cost.backward : 1);
  const double flops = attention_flops(shape) * (backward ? kBackwardProducts : 1);
  const double start_up = (e.causal ? cost.causal_start_up : cost.start_up) / e.keys;
  const double rate = peak_flops(machine.gpu, op.data_type, OperatorClass::attention) * share;
  return flops / rate * (1 + start_up) / wave_share(machine.gpu, e);
}

}  // namespace memwall
