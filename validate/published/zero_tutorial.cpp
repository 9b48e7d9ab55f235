// The logs in DeepSpeed's ZeRO tutorial: GPT-2 of 1.5 and 10 billion parameters on DGX-2 (V100 32 GB), stages 1 and 2.
//
// What the table leaves open: Megatron-LM v1.1.5's GPT-2 in fp16 with its fused kernels, vocabulary 50,304; DeepSpeed
// of 2020 with the settings that the tutorial prints; the second run is checkpointed, the first is not (its flags).
// Peaks are nvidia-smi's, context and all, and are not compared.
#include <fmt/format.h>

#include <algorithm>

#include "validate/published/tables.h"

namespace memwall {
namespace {

std::vector<std::string> tutorial_policies(std::int64_t stage, std::int64_t gpus) {
  return {fmt::format("deepspeed:stage={},ranks={},overlap_comm={}", stage, gpus, stage == 2 ? 1 : 0)};
}

}  // namespace

std::vector<PublishedCase> zero_tutorial_cases(const std::vector<CsvTableRow>& rows) {
  std::vector<PublishedCase> cases;
  for (const CsvTableRow& row : rows) {
    PublishedCase c;
    const std::int64_t gpus = row.integer("gpus"), stage = row.integer("zero"), batch = row.integer("global_batch");
    c.name = fmt::format("{}, {} GPUs, stage {}, {:.4g} samples/s", row.text("run"), gpus, stage,
                         row.number("samples_per_s"));
    c.gpu = "V100 32 GB";
    c.machine = "dgx-2";
    c.job = load_training_job("gpt-megatron");
    c.job.model.layers = row.integer("layers");
    c.job.model.width = row.integer("hidden");
    c.job.model.heads = row.integer("heads");
    c.job.model.vocabulary = 50304;
    c.job.model.longest = c.job.recipe.sequence = row.integer("seq");
    c.job.recipe.batch = batch / gpus;
    if (stage == 1) c.job.recipe.checkpoint = ActivationCheckpoint::none;
    if (!whole_passes(batch, gpus, 1)) c.why_not = "its batch is not the same on all ranks";
    c.policies = tutorial_policies(stage, gpus);
    c.step_seconds = static_cast<double>(batch) / row.number("samples_per_s");
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace memwall
