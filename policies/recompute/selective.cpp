// Selective activation checkpointing: units are re-run, but for the operators whose results are kept from forward.
//
// PyTorch's create_selective_checkpoint_contexts (torch/utils/checkpoint.py). What is kept are the results of the named
// operators, whether autograd needs them or not; autograd's own choice, an operator's inputs, is made again. The host
// dispatches the whole unit a second time: a kept operator costs its call, and no kernel.
#include "policies/recompute/recompute_rewriter.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

RecomputeSettings selective_settings(const PolicyArguments& a) {
  RecomputeSettings s;
  s.units = unit_choice_of("selective", a, false);
  s.rules.early_stop = a.flag("early_stop");
  s.rules.allow_collectives = a.flag("allow_collectives");
  s.save = a.list("save");
  return s;
}

std::vector<ParameterInfo> selective_parameters() {
  std::vector<ParameterInfo> all = {
      patterns("save", kRequired,
               "operators whose results are kept: mm+sdpa. mm: every matrix product; sdpa: every kernel of "
               "scaled_dot_product_attention; else an operator's name, '*' for any letters.")};
  for (ParameterInfo& parameter : unit_parameters(false)) all.push_back(std::move(parameter));
  for (ParameterInfo& parameter : unit_share_parameters()) all.push_back(std::move(parameter));
  for (ParameterInfo& parameter : rerun_parameters()) all.push_back(std::move(parameter));
  return all;
}

const RegisterPolicy registered_selective{
    {.name = "selective",
     .sentence = "keeps the results of the named operators and computes the rest of every unit again in backward",
     .kind = PolicyKind::memory_plan,
     .needs = {.timing = true, .allocations = true, .dataflow = true},
     .parameters = selective_parameters(),
     .answer = [](const Trace& trace) -> PolicyAnswer {
       return {refusal_without_passes("selective", trace), {}, {}};
     },
     .make_rewriter =
         [](const PolicyArguments& a) { return std::make_unique<RecomputeRewriter>(selective_settings(a)); }}};

}  // namespace
}  // namespace memwall
