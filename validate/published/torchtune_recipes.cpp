// torchtune's recipes of Llama 3.1: full finetuning, LoRA and QLoRA of 8B on one RTX 4090, and LoRA of 70B on eight
// A100.
//
// What the table leaves open, and what the recipes' configurations say: batch 2 of 2,048 packed tokens, compiled, bf16,
// layers checkpointed, a loss in 8 chunks. 8B_full_single_device: 8-bit AdamW with paged states, in backward. The
// recipes of LoRA: rank 8 beside queries, values, attention's output and the MLP (70B: rank 16), fused AdamW, no
// accumulation. QLoRA: weights of layers in NF4. 70B_lora: FSDP over eight GPUs, checkpointed. The table's peaks are
// torch.cuda.max_memory_reserved's or max_memory_allocated's; its remarks do not say: active bytes are taken.
#include <fmt/format.h>

#include "validate/published/tables.h"

namespace memwall {
namespace {

struct Hardware {
  std::string machine;
  std::int64_t gpus = 1;
};

Hardware hardware_of(const std::string& words) {
  if (words == "1x4090") return {"rtx-4090", 1};
  if (words == "8xA100") return {"dgx-a100-80gb", 8};
  return {};
}

void set_method(const std::string& method, bool large, Recipe& recipe) {
  recipe.precision = Precision::bf16;
  recipe.checkpoint = ActivationCheckpoint::full;
  recipe.execution = ExecutionMode::compiled;
  recipe.loss_chunks = 8;
  recipe.optimizer_kernels = OptimizerKernels::fused;
  if (method == "full") {
    recipe.optimizer = OptimizerKind::adamw_8bit;
    recipe.optimizer_in_backward = true;
    recipe.paged_optimizer = true;
    return;
  }
  recipe.lora_rank = large ? 16 : 8;
  recipe.weights_in_nf4 = method == "QLoRA";
}

}  // namespace

std::vector<PublishedCase> torchtune_recipe_cases(const std::vector<CsvTableRow>& rows) {
  std::vector<PublishedCase> cases;
  for (const CsvTableRow& row : rows) {
    PublishedCase c;
    const Hardware hardware = hardware_of(row.text("hardware"));
    const bool large = row.text("model") == "Llama3.1-70B";
    c.name = fmt::format("{}, {}, on {}", row.text("model"), row.text("method"), row.text("hardware"));
    c.gpu = row.text("hardware");
    c.machine = hardware.machine;
    if (hardware.machine.empty()) c.why_not = fmt::format("there is no machine file for \"{}\"", row.text("hardware"));
    c.job = load_training_job(large ? "llama3-70b" : "llama3-8b");
    c.job.model.rotary_in_fp32 = c.job.model.expanded_key_value = true;  // as torchtune writes its models
    c.job.recipe.batch = row.integer("batch");
    c.job.recipe.sequence = row.integer("seq");
    set_method(row.text("method"), large, c.job.recipe);
    if (hardware.gpus > 1) c.policies = {fmt::format("fsdp:ranks={}", hardware.gpus)};
    c.step_seconds =
        static_cast<double>(hardware.gpus * c.job.recipe.batch * c.job.recipe.sequence) / row.number("tokens_per_s");
    c.peak_bytes = row.number("peak_mem_gib") * kGiB;
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace memwall
