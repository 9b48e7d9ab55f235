// Finetuning of Qwen by its authors' finetune.py: LoRA, LoRA with trained embeddings, LoRA beside GPTQ's four bits, and
// all parameters, on A100 80 GB, one sequence per pass and eight passes per step.
//
// What the table leaves open, and what the program (finetune.py, its scripts and DeepSpeed configuration) says: layers
// are checkpointed; adapters of rank 64 stand beside every linear layer of a layer, and drop 0.05 of what goes in; LoRA
// runs under accelerate's bf16 autocast over bf16 weights, its pairs in fp32 as PEFT 0.5 makes them, with PyTorch 2.0's
// AdamW in lists; the model returns its logits, which live until forward is over. DeepSpeed makes everything 16-bit and
// has no autocast, so that its losses are of 16-bit logits; CUDA_DEVICE_MAX_CONNECTIONS is 1. "Q-LoRA" is a GPTQ
// checkpoint with ExLlama's kernels off, in fp16, its optimizer in stage 2 with fp32 main parameters, in buckets of 200
// million elements; all parameters are trained under stage 3, on one GPU, too, with the sizes that "auto" gets from the
// width. FlashAttention 2; normalization and rotation by PyTorch's operators. DeepSpeed
// of 2023 has its bucket buffers before backward begins (buckets_before_backward).
//
// How memory was measured is not stated: what nvidia-smi shows is taken (the allocator's cache and the context), summed
// over the GPUs, and "GB" as 1,000 of nvidia-smi's MiB, as in BLOOM's table. Of contexts of PyTorch on an A100 two are
// known: 300 to 600 MiB where kernels are loaded when they are first called, and 1,573 MiB where all are (measured,
// BLOOM's log). Which of these two units and two contexts it was the fitted half tells, by its 12 rows of LoRA: 10^9
// bytes and the small context leave errors of -12 to +4 %, 10^9 bytes and the large one +4 to +7 %, 1,000 MiB and the
// small one -16 to -1 %, 1,000 MiB and the large one -0.8 to +2.4 %. The last is taken.
#include <fmt/format.h>

#include <algorithm>

#include "validate/published/tables.h"

namespace memwall {
namespace {

struct QwenModel {
  const char* name;
  std::int64_t layers, width, heads, inner;
};
constexpr QwenModel kModels[] = {{"1.8B", 24, 2048, 16, 5504},
                                 {"7B", 32, 4096, 32, 11008},
                                 {"14B", 40, 5120, 40, 13696},
                                 {"72B", 80, 8192, 64, 24576}};
constexpr double kThousandMebibytes = 1000.0 * 1024 * 1024;
constexpr std::int64_t kVocabulary = 151936, kPasses = 8, kRank = 64;

const QwenModel* model_of(const std::string& name) {
  for (const QwenModel& model : kModels)
    if (name == model.name) return &model;
  return nullptr;
}

Model network_of(const QwenModel& of) {
  Model m = load_training_job("llama2-7b").model;
  m.layers = of.layers, m.width = of.width, m.heads = of.heads, m.key_value_heads = 0, m.inner = of.inner;
  m.vocabulary = kVocabulary;
  m.normalization = Normalization::rms_norm_in_parts;
  m.joint_query_key_value = m.query_key_value_bias = true;
  m.bias = false;
  m.tied_embedding = false;
  return m;
}

struct Method {
  bool lora = false, embeddings = false, quantized = false;
  int stage = 0;  // of DeepSpeed
};

Method method_of(const std::string& text) {
  const bool lora = text.find("LoRA") != std::string::npos;
  const bool quantized = text.find("Q-LoRA") != std::string::npos;
  const bool third = text.find("Zero3") != std::string::npos;
  const bool several = text.find("multinode") != std::string::npos;
  const int stage = third || !lora ? 3 : several || quantized ? 2 : 0;
  return {lora, text.find("(emb)") != std::string::npos, quantized, stage};
}

void set_recipe(const Method& method, Recipe& recipe) {
  recipe.batch = 1;
  recipe.accumulation = kPasses;
  recipe.precision = method.quantized ? Precision::fp16 : Precision::bf16;
  recipe.attention = Attention::flash;
  recipe.checkpoint = ActivationCheckpoint::full;
  recipe.master_parameters = method.stage != 0;
  recipe.returned_logits = ReturnedLogits::forward;
  recipe.shifted_logits = true;
  recipe.loss_in_fp32 = false;  // but by autocast
  if (!method.lora) return;
  recipe.lora_rank = kRank;
  recipe.lora_in_fp32 = method.stage == 0;
  if (method.stage == 0) recipe.optimizer_kernels = OptimizerKernels::foreach_with_copies;
  recipe.lora_dropout = 0.05;
  recipe.weights_in_gptq = method.quantized;
  recipe.trained_embeddings = method.embeddings;
}

// "auto" in DeepSpeed's file: transformers/integrations/deepspeed.py, trainer_config_finalize.
std::vector<std::string> qwen_policies(const Method& method, std::int64_t gpus, std::int64_t width) {
  if (method.stage == 0) return {};
  if (method.stage == 2)
    return {fmt::format(
        "deepspeed:stage=2,ranks={},overlap_comm=1,reduce_bucket_size=200000000,buckets_before_backward=1", gpus)};
  return {
      fmt::format("deepspeed:stage=3,ranks={},overlap_comm=1,one_queue=1,reduce_bucket_size={},"
                  "prefetch_bucket_size={},param_persistence_threshold={}",
                  gpus, width * width, width * width * 9 / 10, 10 * width)};
}

}  // namespace

std::vector<PublishedCase> qwen_cases(const std::vector<CsvTableRow>& rows) {
  std::vector<PublishedCase> cases;
  for (const CsvTableRow& row : rows) {
    PublishedCase c;
    const std::int64_t gpus = row.integer("nodes") * row.integer("gpus_per_node");
    c.name = fmt::format("Qwen {}, {}, length {}", row.text("model"), row.text("method"), row.text("seq"));
    c.gpu = "A100 80 GB";
    c.machine = gpus == 1 ? "a100-sxm-80gb" : "dgx-a100-80gb";
    c.settings = {"gpu.hbm.unavailable=1573MiB"};
    const QwenModel* model = model_of(row.text("model"));
    if (model == nullptr) {
      c.why_not = fmt::format("\"{}\" is not known", row.text("model"));
    } else {
      const Method method = method_of(row.text("method"));
      c.job.model = network_of(*model);
      c.job.model.longest = c.job.recipe.sequence = row.integer("seq");
      set_recipe(method, c.job.recipe);
      c.policies = qwen_policies(method, gpus, model->width);
    }
    c.ran = row.text("mem_gb") != "-";
    if (*c.ran && !row.text("s_per_iter").empty()) c.step_seconds = row.number("s_per_iter");
    if (*c.ran) c.device_bytes = row.number("mem_gb") * kThousandMebibytes / static_cast<double>(gpus);
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace memwall
