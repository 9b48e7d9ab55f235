// DeepSpeed ZeRO-3 on Azure's NDm A100 v4: GPT of 175 billion to 1 trillion parameters on 128 to 1,024 A100 80 GB, by
// micro batch; rates read off the bars of a picture (2 %). A rate is 96 B s l h^2 (1 + s/6h + V/16lh) / time, which
// counts a second forward.
//
// What the table leaves open: Megatron-DeepSpeed's GPT in fp16 (its recipes of that time), PyTorch 1.10, so that
// attention is plain with Megatron's fused kernels; a vocabulary of 50,304 (GPT-2's, padded to a multiple of 128);
// dropout 0.1, its default; fused Adam with fp32 main parameters; one micro batch per step; the settings of
// stage 3 that its recipes have. Its text says that activations and optimizer states go to the host "where
// needed": the optimizer's states do where the step does not fit without, then the checkpoints, too.
#include <fmt/format.h>

#include <algorithm>

#include "validate/published/tables.h"

namespace memwall {
namespace {

// The numbers are those of Megatron-DeepSpeed's example for Azure.
std::string azure_policy(std::int64_t gpus, const char* device) {
  return fmt::format(
      "deepspeed:stage=3,ranks={},max_live_parameters=3000000000,max_reuse_distance=3000000000,"
      "prefetch_bucket_size=50000000,"
      "reduce_bucket_size=90000000,offload_optimizer={}",
      gpus, device);
}

// As the table's own formula has it, of one GPU.
double azure_flops(const TrainingJob& job) {
  const auto h = static_cast<double>(job.model.width), l = static_cast<double>(job.model.layers),
             s = static_cast<double>(job.recipe.sequence), b = static_cast<double>(job.recipe.batch),
             v = static_cast<double>(job.model.vocabulary);
  return 96 * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
}

}  // namespace

std::vector<PublishedCase> deepspeed_azure_cases(const std::vector<CsvTableRow>& rows) {
  std::vector<PublishedCase> cases;
  for (const CsvTableRow& row : rows) {
    PublishedCase c;
    c.name = fmt::format("{}, length {}, {} GPUs, micro batch {}", row.text("model"), row.text("seq"), row.text("gpus"),
                         row.text("micro_batch"));
    c.gpu = "A100 80 GB";
    c.machine = "dgx-a100-80gb";
    c.job = load_training_job("gpt-megatron");
    c.job.model.width = row.integer("hidden");
    c.job.model.layers = row.integer("layers");
    c.job.model.heads = row.integer("heads");
    c.job.model.vocabulary = 50304;
    c.job.model.longest = c.job.recipe.sequence = row.integer("seq");
    c.job.recipe.batch = row.integer("micro_batch");
    if (row.integer("gpus") > kMostRanks) c.why_not = "its ranks are too many";
    c.policies = {azure_policy(row.integer("gpus"), "none")};
    const std::string offloaded = azure_policy(row.integer("gpus"), "cpu");
    c.policies_where_needed = {{offloaded}, {offloaded, "offload:what=activations,to=host"}};
    c.step_seconds = azure_flops(c.job) / (row.number("tflops_per_gpu") * 1e12);
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace memwall
