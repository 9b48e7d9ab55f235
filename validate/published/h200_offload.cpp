// Llama 3.1 8B on eight H200 under DeepSpeed ZeRO-3 with the optimizer on the CPU, one long sequence per GPU, layers
// checkpointed (ml-engineering, "when to upgrade GPUs").
//
// What the table leaves open: the CPUs and what memory they have (HGX H200's here); whether Liger is its loss alone.
// Taken is what its switch in Transformers patches: the fused linear cross entropy, which never holds all logits, and
// normalization, rotation and SwiGLU. With FlashAttention and a batch of one Transformers asks in each layer whether
// positions are packed, so that the host waits for the GPU there. Times come from its
// rates: 6 N FLOPs per token and 6 s^2 128 x 32 x 32 of attention, counted causally. Peaks are reserved bytes.
#include <fmt/format.h>

#include "validate/published/tables.h"

namespace memwall {
namespace {

std::vector<std::string> h200_policies(std::int64_t gpus) {
  return {fmt::format("deepspeed:stage=3,ranks={},offload_optimizer=cpu", gpus)};
}

}  // namespace

std::vector<PublishedCase> h200_offload_cases(const std::vector<CsvTableRow>& rows) {
  std::vector<PublishedCase> cases;
  for (const CsvTableRow& row : rows) {
    PublishedCase c;
    c.name = fmt::format("{} x {}, length {}", row.text("gpus"), row.text("gpu"), row.text("seq"));
    c.gpu = row.text("gpu");
    c.machine = "hgx-h200";
    if (row.text("gpu") != "H200") c.why_not = fmt::format("there is no machine file for \"{}\"", row.text("gpu"));
    c.job = load_training_job("llama3-8b");
    c.job.model.longest = c.job.recipe.sequence = row.integer("seq");
    c.job.recipe.batch = row.integer("mbs");
    c.job.recipe.precision = Precision::bf16;
    c.job.recipe.master_parameters = true;
    c.job.recipe.checkpoint = ActivationCheckpoint::full;
    c.job.recipe.fused_linear_loss = true;
    c.job.recipe.liger_kernels = true;
    c.job.recipe.synchronizing_attention = true;
    c.job.recipe.attention = Attention::flash3;
    c.policies = h200_policies(row.integer("gpus"));
    c.step_seconds = row.number("derived_step_time_s");
    c.reserved_bytes = row.number("peak_mem_reserved_gib") * kGiB;
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace memwall
