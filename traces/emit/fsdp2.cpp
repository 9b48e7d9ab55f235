// torch 2.15, FSDP2: a Python module with one function that a program calls for its model.
#include <fmt/format.h>

#include "sim/json_text.h"
#include "traces/emit/emitters.h"

namespace memwall {
namespace {

std::string dtype_name(const std::string& type) {
  return type == "bf16" ? "torch.bfloat16" : type == "fp16" ? "torch.float16" : "torch.float32";
}

// Does memwall_apply have something to do? What it cannot is refused.
bool needs_applier(const PlanChoices& choices, Emission& out) {
  const RecomputeChoice& recompute = choices.recompute;
  const bool sharded = choices.shard && choices.shard->stage > 1;
  if (recompute.any() && !recompute.is_named) {
    out.refuse(
        recompute.name,
        recompute.which == BlockRecompute::by_name
            ? recompute.why
            : "the file lists no modules of it for memwall_apply; write its plan without the policy that decides "
              "behind it");
  } else if (sharded && recompute.which == BlockRecompute::groups) {
    out.refuse(recompute.name,
               "a group of blocks that is run again as one does not work with one fully_shard per block");
  } else if (recompute.any()) {
    return true;
  }
  return choices.activations.has_value();
}

std::string sharding(const PlanChoices& choices, bool reshards, bool offloads) {
  std::string text = "    settings = {\n";
  if (choices.is_autocast())
    text += fmt::format("        \"mp_policy\": MixedPrecisionPolicy(param_dtype={}, reduce_dtype=torch.float32),\n",
                        dtype_name(choices.compute_dtype));
  text += fmt::format("        \"reshard_after_forward\": {},\n", reshards ? "True" : "False");
  if (offloads)
    text += fmt::format("        \"offload_policy\": CPUOffloadPolicy(pin_memory={}),\n",
                        choices.optimizer->pinned ? "True" : "False");
  return text +
         "    }\n    for block in blocks:\n        fully_shard(block, **settings)\n    fully_shard(model, **settings)\n"
         "    return model\n";
}

std::string imports(const PlanChoices& choices, bool shards, bool offloads, bool replicates, bool applies) {
  std::string text;
  if (shards && choices.is_autocast()) text += "import torch\n";
  if (shards)
    text += fmt::format("from torch.distributed.fsdp import {}{}fully_shard\n", offloads ? "CPUOffloadPolicy, " : "",
                        choices.is_autocast() ? "MixedPrecisionPolicy, " : "");
  if (replicates) text += "from torch.nn.parallel import DistributedDataParallel\n";
  if (applies) text += text.empty() ? "import memwall_apply\n" : "\nimport memwall_apply\n";
  return text;
}

void say_types(const PlanChoices& choices, bool shards, Emission& out) {
  if (choices.is_autocast() && !shards)
    out.miss(choices.compute_dtype + " matrix products",
             "without fully_shard the program itself runs forward under torch.autocast");
  if (choices.is_pure("bf16") || choices.is_pure("fp16"))
    out.miss(fmt::format("{} parameters and gradients", choices.gradient_dtype),
             "it is the model that has them: build it in that type");
  if (choices.gradient_dtype.empty() && !choices.compute_dtype.empty() && choices.compute_dtype != "fp32")
    out.miss(choices.compute_dtype + " matrix products",
             "the plan does not say of which type gradients are; give --gradient-dtype");
}

}  // namespace

Emission emit_fsdp2(const PlanChoices& choices, const std::string& plan) {
  Emission out;
  out.note("This is for torch 2.15 (torch.distributed.fsdp.fully_shard).");
  const bool applies = needs_applier(choices, out), offloads = fsdp_offloads(choices, out);
  const std::optional<bool> reshards = fsdp_reshards(choices, out);
  const bool replicates = choices.shard && choices.shard->stage == 0;
  if (choices.shard && choices.shard->stage == 1)
    out.refuse("zero:stage=1", "fully_shard splits parameters and gradients, too");
  say_types(choices, reshards.has_value(), out);
  if (choices.batch.samples > 0)
    out.miss(fmt::format("{} samples per forward pass, {} per step", choices.batch.samples, choices.batch.forwards),
             "batches are the program's");
  out.text = fmt::format("# torch 2.15; by memwall emit, of {}\n", plan);
  out.text +=
      imports(choices, reshards.has_value(), offloads, replicates, applies) + "\n\ndef prepare(model, blocks):\n";
  const std::string list = choices.recompute.list.empty()
                               ? "the modules of which each is gathered by itself"
                               : fmt::format("model.get_submodule({})", json_quoted(choices.recompute.list));
  out.text += fmt::format("    # blocks: {}. Before torch.compile, and before the optimizer is made.\n", list);
  if (applies) out.text += fmt::format("    memwall_apply.apply(model, memwall_apply.load({}))\n", json_quoted(plan));
  if (reshards)
    out.text += sharding(choices, *reshards, offloads);
  else if (replicates)
    out.text += fmt::format("    return DistributedDataParallel(model, bucket_cap_mb={})\n",
                            mebibytes_of(choices.shard->bucket_bytes));
  else
    out.text += "    return model\n";
  return out;
}

}  // namespace memwall
