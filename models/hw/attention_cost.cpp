#include "models/hw/attention_cost.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "models/hw/kernel_cost.h"

namespace memwall {
namespace {

constexpr double kQueriesPerBlock = 128;  // as FlashAttention-2 cuts the queries

struct Extents {
  explicit Extents(const Shape& s)
      : batch(at(s, 0)), heads(at(s, 1)), queries(at(s, 3)), keys(at(s, 4)), head_size(at(s, 5)), causal(s[6] != 0) {}
  static double at(const Shape& s, std::size_t i) { return static_cast<double>(s[i]); }
  double batch, heads, queries, keys, head_size;
  bool causal;
};

// The last block of queries, and the last wave of blocks, are paid in full: 129 queries take what 256 of as many keys
// do.
double wave_share(const Gpu& gpu, const Extents& e) {
  const double blocks = e.queries / kQueriesPerBlock;
  const double waves = e.batch * e.heads * std::ceil(blocks) / gpu.multiprocessors;
  return waves / std::ceil(waves) * (blocks / std::ceil(blocks));
}

}  // namespace

bool prices_attention(const Gpu& gpu, const Op& op, const Shape& shape) {
  return !gpu.attention.forward.points.empty() && gpu.multiprocessors > 0 && is_fused_attention(op, shape);
}

double attention_seconds(const Machine& machine, const Op& op, const Shape& shape) {
  assert(prices_attention(machine.gpu, op, shape));
  const AttentionCost& cost = machine.gpu.attention;
  const Extents e(shape);
  const bool backward = op.phase == Phase::backward;
  const double share = cost.forward.at(e.head_size * element_bytes(op.data_type)) * (backward ? cost.backward : 1);
  const double flops = attention_flops(shape) * (backward ? kAttentionBackward : 1);
  const double start_up = (e.causal ? cost.causal_start_up : cost.start_up) / e.keys;
  const double rate = peak_flops(machine.gpu, op.data_type, OperatorClass::attention) * share;
  return flops / rate * (1 + start_up) / wave_share(machine.gpu, e);
}

}  // namespace memwall
