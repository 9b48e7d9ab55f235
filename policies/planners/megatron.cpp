// Megatron-LM's options of activation recomputation, by its own names.
//
// megatron-core: TransformerConfig and TransformerBlock._checkpointed_forward, read in parts and not copied; which
// words are refused together from memory:
//   full       a layer, or a group of layers, keeps what it starts from and runs again as a whole.
//     uniform  every group of recompute_num_layers layers: `checkpoint:mode=every,every=N,early_stop=0`.
//     block    the first recompute_num_layers layers, each alone: `checkpoint:layers=N,early_stop=0`.
//   selective  core attention alone (recompute_modules=core_attn, its default): products of queries and keys, softmax,
//              dropout and the product with values, or the attention kernel. Modules that are called core_attention,
//              where the step has them; elsewhere the ops from one batched product, or attention kernel, to the last
//              before the next product with a weight, if a softmax or an attention kernel is among them.
// Its checkpoints (CheckpointFunction) run a unit to its end. The rest is as the policy `checkpoint` plans it.
//
// Left out: the other words of recompute_modules (mlp, moe, layernorm, ...: `checkpoint:modules=...` runs a module
// again; those that give back their output at once have no like here), distribute_saved_activations, the layers that
// fp8 skips, and pipeline stages: recompute_num_layers counts the layers of the step.
#include <algorithm>

#include "policies/planners/kept_units.h"
#include "policies/planners/planner.h"
#include "policies/planners/unit_reruns.h"
#include "policies/trace/module_blocks.h"
#include "policies/trace/operator_name.h"
#include "sim/error.h"

namespace memwall {
namespace {

enum class CoreOp : std::uint8_t { none, product, softmax, kernel, with_weight };

CoreOp core_op(const Trace& t, const Op& op) {
  const std::string name = plain_operator_name(operator_of(t, op));
  if (op.operator_class == OperatorClass::attention || name.starts_with("scaled_dot_product_")) return CoreOp::kernel;
  if (name.starts_with("bmm") || name.starts_with("baddbmm")) return CoreOp::product;
  if (name == "softmax") return CoreOp::softmax;
  if (name == "mm" || name == "addmm" || name == "linear" || op.operator_class == OperatorClass::gemm)
    return CoreOp::with_weight;
  return CoreOp::none;
}

// One unit per core attention of the pass.
std::vector<RecomputeUnit> core_attentions(const Trace& t, const Pass& pass) {
  std::vector<RecomputeUnit> units;
  const std::vector<OpId> ops = forward_ops(t, pass);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const CoreOp first = core_op(t, t.ops[ops[i]]);
    if (first != CoreOp::product && first != CoreOp::kernel) continue;
    bool attends = false;
    std::size_t last = i;
    for (std::size_t j = i; j < ops.size(); ++j) {
      const CoreOp kind = core_op(t, t.ops[ops[j]]);
      if (kind == CoreOp::with_weight) break;
      attends = attends || kind == CoreOp::softmax || kind == CoreOp::kernel;
      if (kind == CoreOp::product || kind == CoreOp::kernel) last = j;
    }
    if (attends) {
      RecomputeUnit& unit = units.emplace_back();
      unit.name = "core attention " + std::to_string(units.size() - 1);
      unit.ops.assign(ops.begin() + static_cast<std::ptrdiff_t>(i),
                      ops.begin() + static_cast<std::ptrdiff_t>(last) + 1);
    }
    i = last;
  }
  return units;
}

// The modules of that name, in the order in which forward comes to them.
std::vector<std::string> core_attention_modules(const Trace& t) {
  std::vector<std::string> found;
  for (const Op& op : t.ops)
    for (const std::string& part : leading_parts(t.strings[op.module])) {
      const bool is_one = part.substr(part.rfind('.') + 1) == "core_attention";
      if (is_one && std::ranges::find(found, part) == found.end()) found.push_back(part);
    }
  return found;
}

MemoryPlan selective_plan(const StepProfile& profile) {
  UnitReruns reruns;
  reruns.early_stop = false;
  reruns.units.policy = "megatron";
  reruns.units.mode = "full";
  reruns.units.patterns = core_attention_modules(profile.trace());
  if (!reruns.units.patterns.empty()) {
    reruns.units.mode = "modules";
  } else {
    reruns.taken = [&](const Pass& pass, std::vector<RecomputeUnit>) { return core_attentions(profile.trace(), pass); };
  }
  MemoryPlan plan = plan_of_unit_reruns(profile, reruns);
  if (plan.reruns.empty() && kept_units(profile, plan).empty())
    throw UsageError(
        "Policy 'megatron': recompute_granularity=selective finds no core attention that keeps anything in "
        "trace '" +
        profile.trace().name +
        "'; expected modules that are called core_attention, an attention kernel, or a softmax between "
        "batched products.");
  return plan;
}

MemoryPlan full_plan(const StepProfile& profile, bool block, std::size_t layers) {
  UnitReruns reruns;
  reruns.early_stop = false;
  reruns.units.policy = "megatron";
  reruns.units.mode = block ? "full" : "every";
  reruns.units.every = layers;
  if (block)
    reruns.taken = [layers](const Pass&, std::vector<RecomputeUnit> units) {
      units.resize(std::min(units.size(), layers));
      return units;
    };
  return plan_of_unit_reruns(profile, reruns);
}

Planner megatron_planner(const PolicyArguments& arguments) {
  if (arguments.choice("recompute_granularity") == "selective") {
    for (const char* key : {"recompute_method", "recompute_num_layers"})
      if (arguments.is_set(key))
        throw UsageError(std::string("Policy 'megatron': ") + key +
                         " has a meaning with recompute_granularity=full only; selective runs the core attention of "
                         "every layer again.");
    return [](const StepProfile& profile, const Budget&, const Machine&, const Pricer&) {
      return selective_plan(profile);
    };
  }
  if (!arguments.is_set("recompute_method"))
    throw UsageError("Policy 'megatron': recompute_granularity=full needs recompute_method=uniform or block.");
  const bool block = arguments.choice("recompute_method") == "block";
  const auto layers = static_cast<std::size_t>(arguments.integer_or("recompute_num_layers", 1));
  return [block, layers](const StepProfile& profile, const Budget&, const Machine&, const Pricer&) {
    return full_plan(profile, block, layers);
  };
}

const RegisterPlanner registered_megatron{
    {.name = "megatron",
     .sentence = "computes core attention, groups of layers or the first layers again, as Megatron-LM's options say",
     .heeds_budget = false,
     .parameters =
         {choice("recompute_granularity", "selective", {"selective", "full"},
                 "selective: the core attention of every layer; full: whole layers."),
          choice("recompute_method", Unset{"none"}, {"uniform", "block"},
                 "of full: uniform: groups of recompute_num_layers layers; block: the first recompute_num_layers "
                 "layers, each alone."),
          integer("recompute_num_layers", Unset{"none"}, {1, 1'000'000}, "layers",
                  "of full: in a group (uniform), or in all (block); none is 1.")},
     .make = megatron_planner,
     .remark = rerun_units}};

}  // namespace
}  // namespace memwall
