// vTrain's measurements of Megatron-DeepSpeed on DGX A100: GPT in fp16, activations checkpointed, gradients reduced
// after backward without buckets or overlap, ZeRO off.
//
// What the table leaves open: the vocabulary, taken as GPT-2's 50257 padded to 51200 as the other Megatron table has
// it. The machine's memory does not matter for the time.
#include <fmt/format.h>

#include <algorithm>

#include "validate/published/tables.h"

namespace memwall {
namespace {

std::string refusal(const CsvTableRow& row) {
  if (row.integer("tp") != 1) return "tensor parallelism is not implemented";
  if (row.integer("dp") > kMostRanks) return "its replicas are too many";
  if (row.integer("pp") != 1) return "pipeline parallelism is not implemented";
  if (row.integer("gpus") != row.integer("dp")) return "its GPUs are not TP x PP x DP";
  return {};
}

}  // namespace

std::vector<PublishedCase> vtrain_cases(const std::vector<CsvTableRow>& rows) {
  std::vector<PublishedCase> cases;
  for (const CsvTableRow& row : rows) {
    PublishedCase c;
    c.name = fmt::format("h {}, {} layers, TP {}, PP {}, DP {}, batch {}, microbatch {}", row.text("hidden"),
                         row.text("layers"), row.text("tp"), row.text("pp"), row.text("dp"), row.text("global_batch"),
                         row.text("microbatch"));
    c.gpu = "A100";
    c.machine = "a100-sxm-80gb";
    c.why_not = refusal(row);
    c.step_seconds = row.number("iter_time_ms") / 1e3;
    c.job = load_training_job("gpt-megatron");
    c.job.model.width = row.integer("hidden");
    c.job.model.heads = row.integer("heads");
    c.job.model.layers = row.integer("layers");
    c.job.model.longest = c.job.recipe.sequence = row.integer("seq");
    c.job.recipe.data_parallel = static_cast<std::uint32_t>(std::min(row.integer("dp"), kMostRanks));
    c.job.recipe.batch = row.integer("microbatch");
    const auto passes = whole_passes(row.integer("global_batch"), row.integer("dp"), row.integer("microbatch"));
    c.job.recipe.accumulation = passes.value_or(1);
    if (!passes && c.why_not.empty()) c.why_not = "its batch is not made of whole microbatches";
    c.job.recipe.checkpoint = ActivationCheckpoint::full;
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace memwall
