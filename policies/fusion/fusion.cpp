// Fusion: chains of small ops become one kernel each, as a compiler of kernels (torch.compile) makes them, and
// what passes from op to op within a chain never reaches memory.
//
// Sources of the rules: Ansel et al. 2024, "PyTorch 2: Faster Machine Learning Through Dynamic Python Bytecode
// Transformation and Graph Compilation", section 4 (TorchInductor's scheduler), and torch/_inductor/scheduler.py.
// What differs: neighbours that merely read the same tensor are not merged, what backward needs stays saved (a
// compiler may compute some of it again), and matrix products stay as they are unless asked for.
#include <algorithm>

#include <fmt/format.h>

#include "policies/fusion/fusion_plan.h"
#include "policies/fusion/merged_chains.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

bool is_small_op(const Op& op) {
  return op.kind == OpKind::kernel && !op.graph_member && op.dispatch != Dispatch::compiled && op.use_count > 0 &&
         (op.operator_class == OperatorClass::elementwise || op.operator_class == OperatorClass::memory);
}

// Why nothing can be merged; "" where something might.
std::string refusal_without_shapes(const Trace& trace, const FusionRules& rules) {
  const bool small = std::any_of(trace.ops.begin(), trace.ops.end(), is_small_op);
  const bool fusable =
      std::any_of(trace.ops.begin(), trace.ops.end(), [&](const Op& op) { return is_fusable(trace, op, rules); });
  if (!small || fusable) return "";
  return "Policy 'fusion' has no meaning for trace '" + trace.name +
         "': it does not say how many elements its elementwise ops work on, so none can be merged; captured steps "
         "(.mwc) and generated ones do.";
}

class Fusion : public Rewriter {
 public:
  explicit Fusion(const FusionRules& rules) : rules_(rules) {}

  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    if (const std::string refusal = refusal_without_shapes(trace, rules_); !refusal.empty()) throw UsageError(refusal);
    MergedChains merged = with_merged_chains(trace, rules_, machine.host, pricer);
    explain(trace, merged);
    return std::move(merged.trace);
  }

 private:
  void explain(const Trace& before, MergedChains& merged) const {
    Trace& after = merged.trace;
    const bool compiled =
        std::ranges::any_of(before.ops, [](const Op& op) { return op.dispatch == Dispatch::compiled; });
    if (merged.ops > 0)
      after.notes.push_back("fusion: " + merged_text(before, merged) + ".");
    else
      after.notes.push_back(std::string("fusion: no kernels of the step can be merged") +
                            (compiled ? "; what is compiled is merged already." : "."));
    const auto unknown = std::count_if(before.ops.begin(), before.ops.end(), [&](const Op& op) {
      return is_small_op(op) && !is_fusable(before, op, rules_);
    });
    if (unknown > 0)
      after.notes.push_back(
          fmt::format("fusion: of unknown shape, so left apart: {}.",
                      counted_text(static_cast<std::uint64_t>(unknown), "elementwise op, cast or copy",
                                   "elementwise ops, casts and copies")));
  }

  FusionRules rules_;
};

FusionRules rules_of(const PolicyArguments& a) {
  FusionRules rules;
  const std::string& what = a.choice("what");
  rules.scope = what == "all"           ? FusionScope::all
                : what == "elementwise" ? FusionScope::elementwise
                                        : FusionScope::norms;
  rules.gemm_epilogues = a.choice("epilogues") == "gemm";
  rules.largest = static_cast<std::size_t>(a.integer("largest"));
  return rules;
}

const RegisterPolicy registered_fusion{
    {.name = "fusion",
     .sentence = "merges chains of elementwise ops, normalizations and reductions into one kernel each, as "
                 "torch.compile does",
     .kind = PolicyKind::fusion,
     .needs = {.timing = true, .allocations = true, .dataflow = true},
     .parameters = {choice("what", "all", {"all", "elementwise", "norms"},
                           "elementwise: elementwise ops, casts and copies; norms: chains around a normalization or a "
                           "reduction; all: both."),
                    choice("epilogues", "none", {"none", "gemm"},
                           "gemm: what follows a matrix product element by element becomes part of it; none: products "
                           "stay alone."),
                    integer("largest", 64, {2, 4096}, "ops", "at most in one kernel.")},
     .answer = [](const Trace& trace) -> PolicyAnswer {
       return {refusal_without_shapes(trace, {}), {}, {}};
     },
     .make_rewriter = [](const PolicyArguments& a) { return std::make_unique<Fusion>(rules_of(a)); }}};

}  // namespace
}  // namespace memwall
