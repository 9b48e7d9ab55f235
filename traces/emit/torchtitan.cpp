// torchtitan 0.2.2: TOML, for --job.config_file. Its main branch has other keys, in Python.
#include <fmt/format.h>

#include "traces/emit/emitters.h"

namespace memwall {
namespace {

std::string checkpoint_table(const RecomputeChoice& recompute, Emission& out) {
  std::string mode = "none", option;
  if (recompute.every_block_whole())
    mode = "full";
  else if (recompute.which == BlockRecompute::every_nth && recompute.whole()) {
    mode = "selective";
    option = fmt::format("selective_ac_option = \"{}\"\n", recompute.number);
  } else if (!recompute.save_operators.empty())
    refuse_recompute(recompute,
                     "selective_ac_option=\"op\" keeps operators of its own list, and of matrix products every second",
                     out);
  else if (recompute.which == BlockRecompute::groups)
    refuse_recompute(recompute,
                     fmt::format("selective_ac_option=\"{}\" checkpoints one block of every {}, not {} as one",
                                 recompute.number, recompute.number, recompute.number),
                     out);
  else if (recompute.any())
    refuse_recompute(recompute, "selective_ac_option names every N-th block, not the first ones", out);
  std::string text = fmt::format("[activation_checkpoint]\nmode = \"{}\"\n{}", mode, option);
  if (mode != "none") text += fmt::format("early_stop = {}\n", recompute.early_stop);
  return text;
}

std::string types_of(const PlanChoices& choices, Emission& out) {
  if (choices.is_autocast() && choices.compute_dtype == "bf16")
    return "dtype = \"float32\"\nmixed_precision_param = \"bfloat16\"\n";
  if (choices.is_pure("bf16")) return "dtype = \"bfloat16\"\nmixed_precision_param = \"bfloat16\"\n";
  if (choices.is_pure("fp32")) return "dtype = \"float32\"\nmixed_precision_param = \"float32\"\n";
  if (!choices.compute_dtype.empty())
    out.miss(choices.compute_dtype + " matrix products",
             choices.gradient_dtype.empty()
                 ? "the plan does not say of which type gradients are; give --gradient-dtype"
                 : fmt::format("torchtitan has no setting for them beside {} gradients", choices.gradient_dtype));
  return "";
}

std::string training_table(const PlanChoices& choices, bool offloads, Emission& out) {
  std::string text = "\n[training]\n";
  if (choices.batch.samples > 0) {
    text += fmt::format("local_batch_size = {}\n", choices.batch.samples);
    if (const std::int64_t all = choices.samples_of_all_ranks(); all > 0 && choices.batch.forwards > 1)
      text += fmt::format("global_batch_size = {}\n", all);
  }
  if (choices.batch.tokens > 0) text += fmt::format("seq_len = {}\n", choices.batch.tokens);
  text += types_of(choices, out);
  return text + fmt::format("enable_cpu_offload = {}\n", offloads);
}

std::string parallelism_table(const PlanChoices& choices, Emission& out) {
  if (!choices.shard) return "\n[parallelism]\ndata_parallel_replicate_degree = 1\ndata_parallel_shard_degree = 1\n";
  const std::optional<bool> reshards = fsdp_reshards(choices, out);
  const std::int64_t ranks = choices.shard->ranks;
  if (reshards)
    return fmt::format(
        "\n[parallelism]\ndata_parallel_replicate_degree = 1\ndata_parallel_shard_degree = {}\n"
        "fsdp_reshard_after_forward = \"{}\"\n",
        ranks, *reshards ? "always" : "never");
  if (choices.shard->stage == 0)
    return fmt::format("\n[parallelism]\ndata_parallel_replicate_degree = {}\ndata_parallel_shard_degree = 1\n", ranks);
  out.refuse("zero:stage=1", "torchtitan splits with FSDP2, which splits parameters and gradients, too");
  return "";
}

}  // namespace

Emission emit_torchtitan(const PlanChoices& choices, const std::string& plan) {
  Emission out;
  out.note("These are settings of torchtitan 0.2.2, for --job.config_file; other versions have other keys.");
  const bool offloads = fsdp_offloads(choices, out);
  out.text = fmt::format("# torchtitan 0.2.2; by memwall emit, of {}\n", plan);
  out.text += checkpoint_table(choices.recompute, out);
  out.text += training_table(choices, offloads, out);
  out.text += parallelism_table(choices, out);
  if (choices.activations) out.refuse(choices.activations->name, "torchtitan offloads no activations");
  return out;
}

}  // namespace memwall
