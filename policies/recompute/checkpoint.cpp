// Activation checkpointing: forward drops what backward needs, and backward computes it again.
//
// Source of the semantics: Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost", and
// PyTorch's torch/utils/checkpoint.py (non-reentrant): a unit's re-run begins when backward first
// needs something of it, repeats the host program, and stops once all that is kept is back.
#include "policies/recompute/recompute_rewriter.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

RecomputeSettings checkpoint_settings(const PolicyArguments& a) {
  RecomputeSettings s;
  s.units = unit_choice_of("checkpoint", a, true);
  const bool ops = s.units.mode == "ops";
  s.rules.early_stop = a.flag("early_stop");
  s.rules.allow_collectives = a.flag("allow_collectives");
  s.rules.as_framework = !ops;
  const std::string& outputs = a.choice("outputs");
  s.rules.drop_outputs = outputs == "drop" || (outputs == "auto" && ops);
  return s;
}

std::vector<ParameterInfo> checkpoint_parameters() {
  std::vector<ParameterInfo> all = unit_parameters(true);
  all.push_back(
      choice("outputs", "auto", {"auto", "keep", "drop"},
             "keep: what later ops outside of the unit read stays, as torch.utils.checkpoint does; drop: that "
             "goes too, as selective checkpointing by op does. auto: drop for ops, else keep."));
  for (ParameterInfo& parameter : unit_share_parameters()) all.push_back(std::move(parameter));
  for (ParameterInfo& parameter : rerun_parameters()) all.push_back(std::move(parameter));
  return all;
}

const RegisterPolicy registered_checkpoint{
    {.name = "checkpoint",
     .sentence = "drops activations in forward and computes them again in backward, unit by unit",
     .kind = PolicyKind::memory_plan,
     .needs = {.timing = true, .allocations = true, .dataflow = true},
     .parameters = checkpoint_parameters(),
     .answer = [](const Trace& trace) -> PolicyAnswer {
       return {refusal_without_passes("checkpoint", trace), {}, {}};
     },
     .make_rewriter =
         [](const PolicyArguments& a) { return std::make_unique<RecomputeRewriter>(checkpoint_settings(a)); }}};

}  // namespace
}  // namespace memwall
