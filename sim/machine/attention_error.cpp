#include "sim/machine/attention_error.h"

#include <algorithm>

namespace memwall {

double attention_error(const Gpu& gpu, AttentionKernel kernel) {
  constexpr double kBesideAnother = 0.3;
  const AttentionCost* beside = nullptr;
  for (const AttentionCost& cost : gpu.attention) {
    if (cost.kernel == kernel) return cost.residual;
    if (beside == nullptr || cost.kernel == AttentionKernel::flash_attention_2) beside = &cost;
  }
  return beside == nullptr || beside->residual == 0 ? 0 : std::max(beside->residual, kBesideAnother);
}

}  // namespace memwall
