#include "policies/sharding/gradient_hooks.h"

#include <utility>

#include "policies/trace/operator_name.h"

namespace memwall {
namespace {

bool is_sum(const Trace& trace, const Op& op) { return plain_operator_name(operator_of(trace, op)) == "sum"; }

}  // namespace

void order_by_hooks(const Trace& trace, ZeroAnalysis& analysis) {
  for (BackwardPass& pass : analysis.passes)
    for (std::size_t i = 1; i < pass.made.size(); ++i) {
      GradientMade& weight = pass.made[i - 1];
      GradientMade& bias = pass.made[i];
      const Op& first = trace.ops[weight.ready];
      const Op& second = trace.ops[bias.ready];
      if (first.source == kNoOp || first.source != second.source) continue;
      if (is_sum(trace, first) || !is_sum(trace, second)) continue;
      weight.ready = bias.ready;
      std::swap(weight, bias);
    }
}

}  // namespace memwall
