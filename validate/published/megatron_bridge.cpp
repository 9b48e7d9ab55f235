// NVIDIA's Megatron-Bridge performance summaries: tokens per second and GPU by model, system, precision and layout.
//
// Of its rows two are of dense models on H100, Llama 3 70B, both in FP8. The others are refused with what they need.
//
// What the table leaves open is as the program that made it has it (NVIDIA-NeMo/Megatron-Bridge, scripts/performance:
// configs/llama/llama3_llm_pretrain.py, llama3_llm_finetune.py, llama3_workload_base_configs.py, utils/precision.py,
// utils/overrides.py; src/megatron/bridge/training/comm_overlap.py): FP8 on H100 is Transformer Engine's with current
// scaling in all layers, weights of layers are parameters in fp8, gradients are reduced in bf16, sequence parallelism
// with userbuffers beside products; of several replicas the distributed optimizer with both overlaps; cuDNN's
// attention, Transformer Engine's loss in pretraining. LoRA has rank 16 beside the first product of attention alone
// (src/megatron/bridge/perf_recipes/llama/h100/llama3.py), and transposed weights are made in each pass. Not followed:
// buckets of 128 Mi elements, the deferred gradient of the output layer, packed sequences.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "validate/published/tables.h"

namespace memwall {
namespace {

constexpr std::int64_t kLoraRank = 16;

std::string refusal(const CsvTableRow& row) {
  const std::string &model = row.text("model"), &system = row.text("system");
  if (!model.starts_with("LLAMA")) return "mixtures of experts and state-space models are not implemented";
  if (system != "DGX-H100") return fmt::format("there is no machine file for \"{}\" with its precision", system);
  if (row.text("precision") != "FP8" || model != "LLAMA3_70B")
    return fmt::format("{} in {} is not known", model, row.text("precision"));
  return {};
}

// "3454 (2835)" is of two granularities of scales, the first that of the row's own precision.
double first_number(const std::string& text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

void set_parallel(const CsvTableRow& row, std::int64_t replicas, ModelParallel& parallel) {
  parallel.tensor = std::min(row.integer("tp"), kMostRanks);
  parallel.pipeline = std::min(row.integer("pp"), kMostRanks);
  parallel.interleave = row.integer("vp");
  parallel.sequence_parallel = parallel.tp_comm_overlap = parallel.tensor > 1;
  parallel.main_gradients = MainGradients::bf16_fused;
  parallel.distributed_optimizer = parallel.overlap_grad_reduce = parallel.overlap_param_gather = replicas > 1;
}

void set_job(const CsvTableRow& row, PublishedCase& c) {
  c.machine = "hgx-h100";
  c.job = load_training_job("llama3-70b");
  c.job.model.longest = c.job.recipe.sequence = row.integer("seq");
  Recipe& recipe = c.job.recipe;
  recipe.precision = Precision::fp8_transformer_engine;
  recipe.fp8_recipe = Fp8Recipe::tensorwise;
  recipe.fp8_parameters = true;
  recipe.attention = Attention::cudnn;
  recipe.optimizer = OptimizerKind::adamw;
  const std::int64_t ranks = row.integer("tp") * row.integer("pp") * row.integer("cp");
  if (ranks < 1 || row.integer("gpus") % ranks != 0) {
    c.why_not = "its GPUs are not TP x PP x CP x DP";
    return;
  }
  const std::int64_t replicas = row.integer("gpus") / ranks;
  recipe.data_parallel = static_cast<std::uint32_t>(std::min(replicas, kMostRanks));
  recipe.batch = row.integer("mbs");
  const auto passes = whole_passes(row.integer("gbs"), replicas, row.integer("mbs"));
  recipe.accumulation = passes.value_or(1);
  if (!passes) c.why_not = "its batch is not made of whole micro-batches";
  set_parallel(row, replicas, recipe.parallel);
  const bool lora = row.text("task") == "LoRA";
  recipe.lora_rank = lora ? kLoraRank : 0;
  recipe.lora_targets = lora ? LoraTargets::query_key_value : LoraTargets::all;
  recipe.fp8_weight_cache = !lora;
  recipe.parallel.cross_entropy_loss_fusion = !lora;
}

}  // namespace

std::vector<PublishedCase> megatron_bridge_cases(const std::vector<CsvTableRow>& rows) {
  std::vector<PublishedCase> cases;
  for (const CsvTableRow& row : rows) {
    PublishedCase c;
    c.name = fmt::format("{}, {}, {}, {} x {}, {}", row.text("container"), row.text("task"), row.text("model"),
                         row.text("gpus"), row.text("system"), row.text("precision"));
    c.gpu = row.text("system");
    c.why_not = refusal(row);
    if (c.why_not.empty()) set_job(row, c);
    if (const double rate = first_number(row.text("tokens_per_s_per_gpu")); rate >= 1)
      c.step_seconds = row.number("gbs") * row.number("seq") / (rate * row.number("gpus"));
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace memwall
