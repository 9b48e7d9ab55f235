#include "models/hw/attention_cost.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "models/hw/kernel_cost.h"
#include "sim/machine/attention_error.h"

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

// The entry of the kernel, else FlashAttention-2's, else the first.
const AttentionCost& cost_of(const Gpu& gpu, AttentionKernel kernel) {
  const AttentionCost* second = &gpu.attention.front();
  for (const AttentionCost& cost : gpu.attention) {
    if (cost.kernel == kernel) return cost;
    if (cost.kernel == AttentionKernel::flash_attention_2) second = &cost;
  }
  return *second;
}

}  // namespace

bool prices_attention(const Gpu& gpu, const Op& op, const Shape& shape) {
  return !gpu.attention.empty() && gpu.multiprocessors > 0 && is_fused_attention(op, shape);
}

double attention_seconds(const Machine& machine, const Op& op, const Shape& shape) {
  assert(prices_attention(machine.gpu, op, shape));
  const AttentionKernel kernel = attention_kernel(shape);
  const AttentionCost& cost = cost_of(machine.gpu, kernel);
  const Extents e(shape);
  const bool backward = op.phase == Phase::backward;
  const double head_bytes = e.head_size * element_bytes(op.data_type);
  // Of an entry of another kernel than FlashAttention-2, that one's share of it taken off.
  const double beside = cost.kernel == kernel ? 1
                                              : attention_beside_second(kernel, head_bytes) /
                                                    attention_beside_second(cost.kernel, head_bytes);
  const double share = cost.forward.at(head_bytes) * beside * (backward ? cost.backward : 1);
  const double flops = attention_flops(shape) * (backward ? kAttentionBackward : 1);
  const double start_up = (e.causal ? cost.causal_start_up : cost.start_up) / e.keys;
  const double rate = peak_flops(machine.gpu, op.data_type, OperatorClass::attention) * share;
  const double seconds = flops / rate * (1 + start_up) / wave_share(machine.gpu, e);
  if (cost.record <= 0 || cost.kernel != kernel) return seconds;
  return std::max(seconds, flops / (cost.record * (backward ? cost.backward : 1)));
}

double attention_residual(const Gpu& gpu, const Shape& shape) { return attention_error(gpu, attention_kernel(shape)); }

double attention_beside_second(AttentionKernel kernel, double head_bytes) {
  switch (kernel) {
    case AttentionKernel::flash_attention_1:
    case AttentionKernel::memory_efficient:
      return head_bytes <= 128 ? 0.554 : 0.439;
    case AttentionKernel::triton:
      return 1 / 1.9;
    default:
      return 1;
  }
}

}  // namespace memwall
