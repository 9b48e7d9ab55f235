#include "policies/sharding/gradient_hooks.h"

#include <algorithm>
#include <utility>

#include "policies/trace/operator_name.h"
#include "sim/error.h"
#include "sim/trace/step_count.h"

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

void refuse_zeroed_gradients(const Trace& trace, const Dataflow& flow, const ZeroAnalysis& analysis,
                             const std::string& policy) {
  for (const StorageId gradient : analysis.gradients)
    for (const Touch& touch : flow.touches(gradient)) {
      const std::string& name = trace.strings[trace.ops[touch.op].name];
      // What stands with the optimizer of one step is taken out with it.
      const bool update = std::binary_search(analysis.updates.begin(), analysis.updates.end(), touch.op);
      if (update && step_count(trace) == 1) continue;
      if (!touch.writes || (name.find("fill_") == name.npos && name.find("zero_") == name.npos)) continue;
      throw UsageError("Policy '" + policy + "': op " + std::to_string(touch.op) + " ('" + name +
                       "') zeroes a gradient in place, as zero_grad(set_to_none=False) does; expected gradients that "
                       "each step frees (set_to_none=True). `zero` and `ddp` take such a step.");
    }
}

}  // namespace memwall
