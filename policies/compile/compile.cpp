// A step whose model is compiled by torch.compile: what passes between elementwise ops, normalizations and reductions
// never reaches memory, little is kept for backward, nothing is dispatched by the framework.
//
// Sources: Ansel et al. 2024, "PyTorch 2: Faster Machine Learning Through Dynamic Python Bytecode Transformation and
// Graph Compilation"; torch/_functorch/partitioners.py (what is kept for backward: policies/planners/minimum_cut.h);
// torch/_inductor/scheduler.py (what is merged: policies/fusion). Its mode="reduce-overhead" is the policy cuda_graphs
// beside it. Matrix products, convolutions and attention stay the libraries' kernels, with their times.
//
// What breaks a graph in PyTorch (a number read on the host, a synchronization, a collective, another stream) ends a
// run of compiled ops here. The optimizer stays eager.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "policies/compile/common_subexpressions.h"
#include "policies/compile/partitioned_step.h"
#include "policies/compile/split_norms.h"
#include "policies/fusion/merged_chains.h"
#include "policies/trace/described.h"
#include "policies/trace/pipelined_passes.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

struct CompileSettings {
  bool partitions = true;  // keep=partitioner
  bool epilogues = false;
  std::vector<std::string> modules{};
};

std::string not_compiled(const Trace& trace, const std::string& why) {
  return fmt::format("Policy 'compile' has no meaning for trace '{}': {}", trace.name, why);
}

bool is_kernel(const Op& op) { return op.kind == OpKind::kernel || op.kind == OpKind::memset; }

class CompiledModel {
 public:
  CompiledModel(const Trace& trace, const CompileSettings& settings) : t_(trace), settings_(settings) {
    rules_.model_only = true;
    rules_.joins_reruns = true;
    rules_.gemm_epilogues = settings.epilogues;
    rules_.modules = settings.modules;
  }

  std::string refusal() const {
    std::size_t compiled = 0, fusable = 0, kernels = 0;
    for (OpId id = 0; id < t_.ops.size(); ++id) {
      const Op& op = t_.ops[id];
      if (op.graph_member)
        return not_compiled(t_, described_op(t_, id) + " is in a CUDA graph already, whose nodes are what they are.");
      if (!is_of_model(t_, op)) continue;
      ++kernels;
      compiled += op.dispatch == Dispatch::compiled ? 1 : 0;
      fusable += is_fusable(t_, op, rules_) ? 1 : 0;
    }
    if (kernels == 0)
      return not_compiled(
          t_, settings_.modules.empty()
                  ? "no kernel of it is known to be of forward or backward."
                  : "no kernel of forward or backward is within modules=" + joined(settings_.modules) + ".");
    if (compiled == kernels) return not_compiled(t_, "its model is compiled already.");
    if (fusable == 0)
      return not_compiled(t_,
                          "it does not say how many elements its elementwise ops work on, so nothing tells what a "
                          "compiler would merge; captured steps (.mwc) and generated ones do.");
    return "";
  }

  bool has_kernels() const {
    return std::ranges::any_of(t_.ops, [&](const Op& op) { return is_of_model(t_, op); });
  }

  Trace apply(const Machine& machine, const Pricer& pricer) {
    if (const std::string sentence = refusal(); !sentence.empty()) throw UsageError(sentence);
    const auto is_compiled = [&](const Op& op) { return is_of_model(t_, op); };
    const SharedResults shared = with_common_subexpressions(with_split_norms(t_, machine.host, pricer, is_compiled),
                                                            machine.host, rules_, is_compiled);
    PartitionedStep kept{shared.trace, 0};
    if (settings_.partitions) kept = with_partition(kept.trace, machine, pricer, is_compiled);
    MergedChains merged = with_merged_chains(kept.trace, rules_, machine.host, pricer);
    const auto was_compiled = [](const Op& op) { return op.dispatch == Dispatch::compiled; };
    if (merged.ops == 0 && kept.rerun_ops == 0 && std::ranges::any_of(t_.ops, was_compiled))
      throw UsageError(not_compiled(t_, "what a compiler merges of it is compiled already."));
    const std::string text = merged_text(t_, merged);
    Trace result = std::move(merged.trace);
    for (RecipeItem& item : result.recipe)
      if (item.what == "execution")
        item = {.what = item.what, .value = settings_.modules.empty() ? "compiled" : "compiled in part", .setting = ""};
    const std::size_t left = drop_dispatch(result, machine.host);
    result.notes.push_back(fmt::format(
        "compile: {}{} run again in backward, merged with what asks for them; {}. {} of compiled code are one call "
        "each, "
        "without the framework's dispatch{}.",
        shared.ops == 0 ? ""
                        : counted_text(shared.ops, "op") + " that compute what others have computed are left out; ",
        counted_text(kept.rerun_ops, "op"), text, counted_text(left, "kernel"),
        t_.machine.empty() ? "" : ", whose cost is the machine file's"));
    return result;
  }

 private:
  bool is_of_model(const Trace& trace, const Op& op) const {
    return is_kernel(op) && op.phase != Phase::optimizer && op.phase != Phase::unknown &&
           (settings_.modules.empty() || !named_module(trace.strings[op.module], settings_.modules).empty());
  }

  static std::string joined(const std::vector<std::string>& words) {
    std::string all;
    for (const std::string& word : words) all += (all.empty() ? "" : "+") + word;
    return all;
  }

  // What is not merged is called by compiled code, too: the libraries' kernels, and what stands alone.
  std::size_t drop_dispatch(Trace& trace, const HostCosts& host) const {
    std::size_t kernels = 0;
    for (Op& op : trace.ops) {
      if (!is_of_model(trace, op)) continue;
      kernels += op.kernels;
      if (op.dispatch == Dispatch::compiled && op.framework_calls == 0 && op.origin == Origin::modelled) continue;
      op.dispatch = Dispatch::compiled;
      op.framework_calls = 0;
      op.host_gap = std::int64_t{op.kernels} * host.compiled_call;
      op.host_cost = std::int64_t{op.kernels} * host.launch;
    }
    return kernels;
  }

  const Trace& t_;
  const CompileSettings& settings_;
  FusionRules rules_;
};

// Of a generated network.
bool has_blocks(const Trace& t) {
  return std::ranges::any_of(t.ops, [&](const Op& op) { return t.strings[op.module].starts_with("layers."); });
}

class Compile : public Rewriter {
 public:
  explicit Compile(CompileSettings settings) : settings_(std::move(settings)) {}

  // Behind what changes the program: a compiler takes it as it is.
  int precedence() const override { return 100; }

  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    // A stage of a pipeline may hold no blocks.
    if (!settings_.modules.empty() && is_pipeline_stage(trace) && !has_blocks(trace) &&
        !CompiledModel(trace, settings_).has_kernels())
      return trace;
    const auto compiled = [&](const Trace& one) { return CompiledModel(one, settings_).apply(machine, pricer); };
    return has_pipelined_passes(trace) ? with_each_pass_rewritten(trace, compiled) : compiled(trace);
  }

 private:
  const CompileSettings settings_;
};

std::unique_ptr<Rewriter> compile_rewriter_of(const PolicyArguments& a) {
  CompileSettings settings;
  settings.partitions = a.choice("keep") == "partitioner";
  settings.epilogues = a.choice("epilogues") == "gemm";
  if (a.is_set("modules")) settings.modules = a.list("modules");
  return std::make_unique<Compile>(settings);
}

const RegisterPolicy registered_compile{
    {.name = "compile",
     .sentence = "compiles the model as torch.compile does: merged kernels, less kept for backward, no dispatch",
     .kind = PolicyKind::recipe,
     .needs = {.timing = true, .allocations = true, .dataflow = true, .shapes = true},
     .parameters = {choice("keep", "partitioner", {"partitioner", "saved"},
                           "partitioner: what torch.compile's minimum cut keeps for backward, the rest is computed "
                           "again; saved: what the step keeps."),
                    choice("epilogues", "none", {"none", "gemm"},
                           "gemm: what follows a matrix product element by element becomes part of it (max-autotune)."),
                    patterns("modules", Unset{"all"},
                             "what is compiled, each by itself: layers.*; by default the whole model.")},
     .answer = [](const Trace& trace) -> PolicyAnswer {
       const CompileSettings settings;
       return {.refusal = CompiledModel(trace, settings).refusal(), .setting = {}, .reason = {}};
     },
     .make_rewriter = compile_rewriter_of}};

}  // namespace
}  // namespace memwall
