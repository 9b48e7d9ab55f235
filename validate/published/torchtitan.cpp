// torchtitan's own benchmarks: Llama under FSDP2 on A100, on H100 of 96 GB HBM2e (2.4 TB/s, 500 W) and on H200.
//
// What the table leaves open: lengths of some rows (8,192, the recipe's), the batch of one ("1": a step is one
// sequence per GPU). fp32 shards and states, bf16 parameters, gradients reduced in fp32; AdamW. Peaks are reserved
// bytes. With float8 the linear layers of blocks compute in fp8 with a scale for each tensor; parameters are gathered
// in bf16 (one row gathers them in fp8). "selective layer" checkpoints every second layer.
#include <fmt/format.h>

#include <algorithm>

#include "validate/published/tables.h"

namespace memwall {
namespace {

std::string torchtitan_sharding(std::int64_t gpus) { return fmt::format("fsdp:ranks={},reduce_dtype=fp32", gpus); }

std::vector<std::string> torchtitan_policies(const CsvTableRow& row) {
  std::vector<std::string> all{torchtitan_sharding(row.integer("gpus"))};
  const std::string& checkpoint = row.text("act_ckpt");
  if (checkpoint == "selective(op)" || checkpoint == "selective op")
    all.push_back("torchtitan:mode=selective,selective_ac_option=op");
  if (checkpoint == "selective layer") all.push_back("torchtitan:mode=selective,selective_ac_option=2");
  if (checkpoint == "full") all.push_back("torchtitan:mode=full");
  return all;
}

std::string torchtitan_machine(const std::string& gpu) {
  if (gpu.rfind("H100-96GB", 0) == 0) return "h100-sxm-96gb-hbm2e";
  if (gpu.rfind("H200", 0) == 0) return "hgx-h200";
  if (gpu.rfind("A100-80GB", 0) == 0) return "dgx-a100-80gb";
  return {};
}

std::string torchtitan_workload(const std::string& model) {
  if (model == "llama3.1-8B") return "llama3-8b";
  if (model == "llama3.1-70B") return "llama3-70b";
  if (model == "llama2-13B") return "llama2-13b";
  if (model == "llama2-70B") return "llama2-70b";
  return {};
}

std::string torchtitan_refusal(const CsvTableRow& row) {
  if (row.integer("cp") != 1) return "context parallelism is not implemented";
  const bool compiled = row.text("options").find("compile") != std::string::npos;
  if (row.integer("tp") != 1 && row.integer("pp") == 1)
    return compiled ? "compiled layers with tensor parallelism are not implemented"
                    : "FSDP2 beside tensor parallelism without a pipeline is not implemented";
  if (row.integer("pp") != 1) return "pipeline parallelism is not implemented";
  if (torchtitan_machine(row.text("gpu")).empty())
    return fmt::format("there is no machine file for \"{}\"", row.text("gpu"));
  if (torchtitan_workload(row.text("model")).empty()) return fmt::format("\"{}\" is not known", row.text("model"));
  if (row.integer("gpus") > kMostRanks) return "its ranks are too many";
  return {};
}

}  // namespace

std::vector<PublishedCase> torchtitan_cases(const std::vector<CsvTableRow>& rows) {
  std::vector<PublishedCase> cases;
  for (const CsvTableRow& row : rows) {
    PublishedCase c;
    c.name =
        fmt::format("{} on {} {}, {} x {}, checkpointed: {}, {}", row.text("model"), row.text("gpus"), row.text("gpu"),
                    row.text("local_batch"), row.text("seq"), row.text("act_ckpt"), row.text("options"));
    c.gpu = row.text("gpu");
    c.machine = torchtitan_machine(c.gpu);
    c.why_not = torchtitan_refusal(row);
    if (const std::string workload = torchtitan_workload(row.text("model")); !workload.empty())
      c.job = load_training_job(workload);
    c.job.model.longest = c.job.recipe.sequence = row.integer("seq");
    c.job.recipe.batch = row.integer("local_batch");
    const bool fp8 = row.text("options").find("float8") != std::string::npos;
    c.job.recipe.precision = fp8 ? Precision::fp8 : Precision::bf16;
    c.job.recipe.master_parameters = true;
    if (row.text("options").find("compile") != std::string::npos) c.job.recipe.execution = ExecutionMode::compiled;
    // The loss was compiled, with its cast of the logits, from 2025 on; until then "TODO: compiling loss function
    // causes CUDA errors, turning off for now" (torchtitan's train.py of 2024).
    c.job.recipe.compiled_loss = row.text("source").find("202506") != std::string::npos;
    c.job.recipe.loss_in_fp32 = !c.job.recipe.compiled_loss;
    c.alloc_conf = "expandable_segments:True";  // its run_train.sh
    c.policies = torchtitan_policies(row);
    c.ran = row.text("tokens_per_s_per_gpu") != "OOM";
    if (*c.ran)
      c.step_seconds =
          static_cast<double>(c.job.recipe.batch * c.job.recipe.sequence) / row.number("tokens_per_s_per_gpu");
    if (*c.ran && !row.text("peak_mem_gib").empty()) c.reserved_bytes = row.number("peak_mem_gib") * kGiB;
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace memwall
