// llm-foundry's benchmark of MPT under PyTorch's FSDP (Composer): 125 million to 70 billion parameters on 8 to 512 A100
// and H100, lengths of 512 to 65,536.
//
// What the table leaves open: the network of the H100 nodes (eight adapters of 400 Gbit/s here). Every row is trained
// in bf16 with fp32 shards and states, as FSDP's mixed precision has it; "PURE" reduces gradients in bf16, "DEFAULT"
// in fp32. Attention is Triton's, as its benchmark's script has it (`--attn_impl triton`); no table of components says
// how fast that is. The loss is a fused kernel on bf16
// logits: the generator's is an unfused one on bf16. fp8 is Transformer Engine's, whose casts
// are fused into what makes the tensor; nearest to that are the generator's compiled layers. Composer reduces gradients
// in every pass.
#include <fmt/format.h>

#include <algorithm>

#include "validate/published/tables.h"

namespace memwall {
namespace {

std::vector<std::string> mosaic_policies(const CsvTableRow& row) {
  return {fmt::format("fsdp:version=1,ranks={},reduce_dtype={},strategy={}", row.integer("gpus"),
                      row.text("mp_mode") == "PURE" ? "bf16" : "fp32",
                      row.text("sharding") == "FULL_SHARD" ? "full" : "grad_op")};
}

std::string mosaic_machine(const std::string& gpu) {
  if (gpu == "a100_40gb") return "azure-ndv4";
  if (gpu == "a100_80gb") return "dgx-a100-80gb";
  if (gpu == "h100_80gb") return "hgx-h100";
  return {};
}

std::string mosaic_refusal(const CsvTableRow& row) {
  if (mosaic_machine(row.text("gpu")).empty())
    return fmt::format("there is no machine file for \"{}\"", row.text("gpu"));
  if (row.text("act_cpu_offload") == "True") return "activations offloaded with a checkpoint are not implemented";
  const std::string& sharding = row.text("sharding");
  if (sharding != "FULL_SHARD" && sharding != "SHARD_GRAD_OP")
    return fmt::format("sharding \"{}\" is not known", sharding);
  if (row.integer("gpus") > kMostRanks) return "its ranks are too many";
  const auto passes = whole_passes(row.integer("global_batch"), row.integer("gpus"), row.integer("microbatch"));
  if (passes.value_or(0) != row.integer("grad_accum")) return "its batch is not what its micro batches add up to";
  return {};
}

}  // namespace

std::vector<PublishedCase> mosaic_cases(const std::vector<CsvTableRow>& rows) {
  std::vector<PublishedCase> cases;
  for (const CsvTableRow& row : rows) {
    PublishedCase c;
    c.name = fmt::format("{} on {} {}, {}, length {}, {} x {}{}", row.text("model"), row.text("gpus"), row.text("gpu"),
                         row.text("precision"), row.text("seq"), row.text("grad_accum"), row.text("microbatch"),
                         row.text("act_ckpt") == "True" ? ", checkpointed" : "");
    c.gpu = row.text("gpu");
    c.machine = mosaic_machine(c.gpu);
    c.why_not = mosaic_refusal(row);
    c.job = load_training_job("gpt2-124m");
    c.job.model.width = row.integer("d_model");
    c.job.model.heads = row.integer("n_heads");
    c.job.model.layers = row.integer("n_layers");
    c.job.model.vocabulary = row.integer("vocab");
    c.job.model.longest = c.job.recipe.sequence = row.integer("seq");
    c.job.model.dropout = 0;
    c.job.recipe.batch = row.integer("microbatch");
    c.job.recipe.accumulation = row.integer("grad_accum");
    c.job.recipe.precision = Precision::bf16;
    if (row.text("precision") == "amp_fp8") {
      c.job.recipe.precision = Precision::fp8;
      c.job.recipe.execution = ExecutionMode::compiled;
    }
    c.job.recipe.master_parameters = true;
    c.job.recipe.loss_in_fp32 = false;
    if (row.text("act_ckpt") == "True") c.job.recipe.checkpoint = ActivationCheckpoint::full;
    c.job.recipe.attention = Attention::triton;
    c.policies = mosaic_policies(row);
    c.step_seconds = row.number("derived_step_time_s");
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace memwall
