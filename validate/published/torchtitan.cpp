// torchtitan's own benchmarks: Llama under FSDP2 on A100, on H100 of 96 GB HBM2e (2.4 TB/s, 500 W) and on H200.
//
// What the table leaves open: lengths of some rows (8,192, the recipe's), the batch of one ("1": a step is one
// sequence per GPU). fp32 shards and states, bf16 parameters, gradients reduced in fp32; AdamW. Peaks are reserved
// bytes. With float8 the linear layers of blocks compute in fp8 with a scale for each tensor; parameters are gathered
// in bf16 (one row gathers them in fp8). "selective layer" checkpoints every second layer.
//
// Rows with tensor, pipeline or context parallelism are a table of their own, to which nothing is fitted: shares over
// the ranks that are left, between nodes, as torchtitan's mesh has them; blocks compiled by the policy `compile`. Async
// tensor parallelism is memwall's model of what torch.compile merges; float8 is tensorwise where a row does not say.
//
// Of pipelines a row names the schedule, 1F1B or Interleaved 1F1B (two stages on each GPU: torchtitan's default); the
// local batch is cut into as many micro-batches as the job has stages, torchtitan's default of 2024 and of 2025 before
// pipeline_parallel_microbatch_size (build_pipeline_schedule). It is the batch of the ranks that read samples of their
// own, which a pipeline's ranks share.
#include <fmt/format.h>

#include <algorithm>

#include "validate/published/tables.h"

namespace memwall {
namespace {

bool is_in(const CsvTableRow& row, const char* word) { return row.text("options").find(word) != std::string::npos; }

bool is_divided(const CsvTableRow& row) {
  return row.integer("tp") != 1 || row.integer("pp") != 1 || row.integer("cp") != 1;
}

std::vector<std::string> torchtitan_policies(const CsvTableRow& row) {
  std::vector<std::string> all;
  if (row.integer("pp") == 1)  // else FSDP2 is that of the generated stages
    all.push_back(fmt::format("fsdp:ranks={},reduce_dtype=fp32",
                              row.integer("gpus") / std::max<std::int64_t>(row.integer("tp"), 1)));
  if (is_divided(row) && is_in(row, "compile")) all.push_back("compile:modules=layers.*");
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
  if (model == "llama3.1-405B") return "llama3-405b";
  if (model == "llama2-13B") return "llama2-13b";
  if (model == "llama2-70B") return "llama2-70b";
  return {};
}

// Of the whole pipeline.
std::int64_t stages_of(const CsvTableRow& row) {
  return std::clamp(row.integer("pp"), std::int64_t{1}, kMostRanks) * (is_in(row, "nterleaved") ? 2 : 1);
}

std::string torchtitan_refusal(const CsvTableRow& row) {
  if (row.integer("cp") != 1) return "context parallelism is not implemented";
  if (row.integer("pp") != 1 && !is_in(row, "1F1B"))
    return "its pipeline's schedule is not known; expected 1F1B or Interleaved 1F1B among its options";
  if (row.integer("pp") != 1 && row.integer("local_batch") % stages_of(row) != 0)
    return fmt::format("a local batch of {} cannot be cut into as many micro-batches as {} stages",
                       row.integer("local_batch"), stages_of(row));
  if (row.integer("tp") != 1 && is_in(row, "rowwise"))
    return "float8 with a scale per row is not implemented with tensor parallelism";
  const std::int64_t gpus = row.integer("gpus"), tp = row.integer("tp"), pp = row.integer("pp");
  if (tp < 1 || pp < 1 || gpus < 1 || gpus / tp % pp != 0 || gpus % tp != 0) return "its GPUs are not FSDP x TP x PP";
  if (torchtitan_machine(row.text("gpu")).empty())
    return fmt::format("there is no machine file for \"{}\"", row.text("gpu"));
  if (torchtitan_workload(row.text("model")).empty()) return fmt::format("\"{}\" is not known", row.text("model"));
  if (row.integer("gpus") > kMostRanks) return "its ranks are too many";
  return {};
}

void set_torchtitan_pipeline(const CsvTableRow& row, TrainingJob& job) {
  Recipe& recipe = job.recipe;
  recipe.parallel.framework = ParallelFramework::torchtitan;
  recipe.parallel.pipeline = row.integer("pp");
  recipe.parallel.interleave = stages_of(row) / row.integer("pp");
  recipe.accumulation = stages_of(row);
  recipe.batch = row.integer("local_batch") / stages_of(row);
  recipe.data_parallel = static_cast<std::uint32_t>(row.integer("gpus") / (row.integer("tp") * row.integer("pp")));
}

void set_torchtitan_tensor(const CsvTableRow& row, TrainingJob& job) {
  job.recipe.parallel.framework = ParallelFramework::torchtitan;
  job.recipe.parallel.tensor = std::min(row.integer("tp"), kMostRanks);
  job.recipe.parallel.sequence_parallel = true;
  job.recipe.parallel.async_tensor_parallel = is_in(row, "asyncTP");
}

PublishedCase torchtitan_case(const CsvTableRow& row) {
  PublishedCase c;
  c.name =
      fmt::format("{} on {} {}, {} x {}, checkpointed: {}, {}", row.text("model"), row.text("gpus"), row.text("gpu"),
                  row.text("local_batch"), row.text("seq"), row.text("act_ckpt"), row.text("options"));
  c.gpu = row.text("gpu");
  c.machine = torchtitan_machine(c.gpu);
  c.why_not = torchtitan_refusal(row);
  if (const std::string workload = torchtitan_workload(row.text("model")); !workload.empty())
    c.job = load_training_job(workload);
  Recipe& recipe = c.job.recipe;
  c.job.model.longest = recipe.sequence = row.integer("seq");
  recipe.batch = row.integer("local_batch");
  recipe.precision = is_in(row, "float8") ? Precision::fp8 : Precision::bf16;
  recipe.master_parameters = true;
  if (is_in(row, "compile") && !is_divided(row)) recipe.execution = ExecutionMode::compiled;
  // The loss was compiled, with its cast of the logits, from 2025 on; until then "TODO: compiling loss function
  // causes CUDA errors, turning off for now" (torchtitan's train.py of 2024).
  recipe.compiled_loss = !is_divided(row) && row.text("source").find("202506") != std::string::npos;
  recipe.loss_in_fp32 = !recipe.compiled_loss;
  if (row.integer("tp") > 1) set_torchtitan_tensor(row, c.job);
  if (row.integer("pp") > 1 && c.why_not.empty()) set_torchtitan_pipeline(row, c.job);
  c.alloc_conf = "expandable_segments:True";  // its run_train.sh
  c.policies = torchtitan_policies(row);
  c.ran = row.text("tokens_per_s_per_gpu") != "OOM";
  // A GPU's tokens are those of the ranks that share them, over these.
  const double sharers = row.number("tp") * row.number("pp") * row.number("cp");
  if (*c.ran && sharers > 0)
    c.step_seconds = static_cast<double>(row.integer("local_batch") * recipe.sequence) /
                     (row.number("tokens_per_s_per_gpu") * sharers);
  if (*c.ran && !row.text("peak_mem_gib").empty()) c.reserved_bytes = row.number("peak_mem_gib") * kGiB;
  return c;
}

std::vector<PublishedCase> cases_where(const std::vector<CsvTableRow>& rows, bool divided) {
  std::vector<PublishedCase> cases;
  for (const CsvTableRow& row : rows)
    if (is_divided(row) == divided) cases.push_back(torchtitan_case(row));
  return cases;
}

}  // namespace

std::vector<PublishedCase> torchtitan_cases(const std::vector<CsvTableRow>& rows) { return cases_where(rows, false); }

std::vector<PublishedCase> torchtitan_divided_cases(const std::vector<CsvTableRow>& rows) {
  return cases_where(rows, true);
}

}  // namespace memwall
