// Inputs of layers wait on the host between forward and backward.
//
// Rhu, Gimelshein, Clemons, Zulfiqar, Keckler 2016, "vDNN: Virtualized Deep Neural Networks for Scalable,
// Memory-Efficient Neural Network Design" (MICRO 2016), section 3:
//   conv  offloads what convolutions read, all what every layer reads. The copy leaves while the last layer that
//         reads it in forward computes, and the layer after waits for it, so that the memory is free from there on.
//   back  while backward of a layer computes, what the nearest layer before it needs is fetched (their search stops at
//         the nearest convolution); a layer waits for its own.
// Written from the paper's abstract and public descriptions of its algorithm. Deviations: a layer is an op of forward;
// the choice of convolution algorithms (vDNN dyn) is not part of a memory plan; storages below min_bytes stay, which a
// captured step has many of.
#include <algorithm>
#include <map>

#include "policies/planners/host_transfer.h"
#include "policies/planners/planner.h"
#include "policies/trace/passes_in_turn.h"

namespace memwall {
namespace {

struct VdnnSettings {
  bool only_convolutions = false;
  Bytes min_bytes = 0;
};

// What waits on the host: from its last use in forward to its first in backward.
std::vector<Gap> layer_inputs(const StepProfile& p, const Pass& pass, const VdnnSettings& settings) {
  const Trace& t = p.trace();
  std::vector<Gap> chosen;
  for (const Gap& gap : p.gaps()) {
    if (gap.wraps || gap.after < pass.begin || gap.after >= pass.backward || gap.before < pass.backward) continue;
    if (t.storages[gap.storage].bytes < settings.min_bytes || !is_saved_activation(t, p.flow(), pass, gap.storage))
      continue;
    const auto touches = p.flow().touches(gap.storage).first(gap.touch + 1);
    const bool read = std::any_of(touches.begin(), touches.end(), [&](const Touch& touch) {
      return touch.reads &&
             (!settings.only_convolutions || t.ops[touch.op].operator_class == OperatorClass::convolution);
    });
    if (read && runs_on_device(t.ops[gap.after].kind)) chosen.push_back(gap);
  }
  return chosen;
}

// `order`: of the fetch, among those at one op.
StorageDecision moved_between(const StepProfile& p, const Gap& gap, OpId fetched, std::uint32_t order) {
  const Touch& last = p.flow().touches(gap.storage)[gap.touch];
  StorageDecision d;
  d.storage = gap.storage;
  // While the layer computes; behind it where it changes what it reads.
  d.copies.push_back({{last.op, last.writes, 0}, 0});
  d.drops.push_back({{last.op, true, 1}});
  d.fetches.push_back({{fetched, false, order}, 0});
  return d;
}

MemoryPlan vdnn(const StepProfile& p, const VdnnSettings& settings) {
  MemoryPlan plan;
  plan.tiers.push_back(to_host());
  for (const Pass& pass : passes_in_turn(p.trace())) {
    std::map<OpId, std::vector<Gap>> by_consumer;
    for (const Gap& gap : layer_inputs(p, pass, settings)) by_consumer[gap.before].push_back(gap);
    OpId before = kNoOp;  // the layer whose backward comes before
    for (const auto& [consumer, gaps] : by_consumer) {
      // The first layer's come when it needs them, before what the next one needs.
      for (const Gap& gap : gaps)
        plan.storages.push_back(before == kNoOp ? moved_between(p, gap, consumer, 0)
                                                : moved_between(p, gap, before, 1));
      before = consumer;
    }
  }
  std::sort(plan.storages.begin(), plan.storages.end(),
            [](const StorageDecision& a, const StorageDecision& b) { return a.storage < b.storage; });
  return plan;
}

const RegisterPlanner registered_vdnn{
    {.name = "vdnn",
     .sentence = "keeps inputs of layers on the host between forward and backward (Rhu et al. 2016)",
     .heeds_budget = false,
     .parameters = {choice("layers", "all", {"all", "conv"}, "whose inputs: of all layers, or of convolutions."),
                    bytes("min_bytes", "1MiB", 0, "smaller storages stay.")},
     .make = [](const PolicyArguments& arguments) -> Planner {
       const VdnnSettings settings{arguments.choice("layers") == "conv", arguments.bytes("min_bytes")};
       return [settings](const StepProfile& profile, const Budget&, const Machine& machine, const Pricer&) {
         require_host("vdnn", machine);
         return vdnn(profile, settings);
       };
     }}};

}  // namespace
}  // namespace memwall
