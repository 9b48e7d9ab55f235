// Megatron-LM's tensor-parallel scaling table of 2020: GPT in fp16 on DGX-2 (V100) and DGX A100.
//
// What the table leaves open: activations are checkpointed layer by layer, as the FLOP rates say (they match
// 96 B s l h^2, which counts a second forward) and the example scripts do; a replica's batch is one microbatch; the
// cards are of 40 GB, as there were no others when it was written (September 2020); the
// optimizer is fused Adam with fp32 main parameters.
#include <fmt/format.h>

#include <algorithm>

#include "validate/published/tables.h"

namespace memwall {
namespace {

std::string machine_of(const std::string& system) {
  if (system.find("A100") != std::string::npos) return "a100-sxm-40gb";
  if (system.find("V100") != std::string::npos) return "v100-sxm3-32gb";  // a DGX-2 has them
  return {};
}

std::string refusal(const CsvTableRow& row, const std::string& machine) {
  if (machine.empty()) return fmt::format("there is no machine file for \"{}\"", row.text("system"));
  if (row.integer("tp") > kMostRanks) return "its ranks are too many";
  if (row.integer("dp") > kMostRanks) return "its ranks are too many";
  if (!whole_passes(row.integer("global_batch"), row.integer("dp"), 1)) return "its batch is not the same on all ranks";
  return {};
}

}  // namespace

std::vector<PublishedCase> megatron_cases(const std::vector<CsvTableRow>& rows) {
  std::vector<PublishedCase> cases;
  for (const CsvTableRow& row : rows) {
    PublishedCase c;
    c.name = fmt::format("{}, {}, TP {}, DP {}, batch {}", row.text("system"), row.text("model"), row.text("tp"),
                         row.text("dp"), row.text("global_batch"));
    c.gpu = row.text("system");
    c.machine = machine_of(c.gpu);
    c.why_not = refusal(row, c.machine);
    c.step_seconds = row.number("iter_time_ms") / 1e3;
    c.job = load_training_job("gpt-megatron");
    c.job.model.width = row.integer("hidden");
    c.job.model.heads = row.integer("attn_heads");
    c.job.model.layers = row.integer("layers");
    c.job.model.vocabulary = row.integer("vocab");
    c.job.model.longest = c.job.recipe.sequence = row.integer("seq");
    c.job.recipe.data_parallel = static_cast<std::uint32_t>(std::min(row.integer("dp"), kMostRanks));
    c.job.recipe.batch = row.integer("global_batch") / row.integer("dp");
    c.job.recipe.checkpoint = ActivationCheckpoint::full;
    c.job.recipe.parallel.tensor = std::min(row.integer("tp"), kMostRanks);
    c.job.recipe.parallel.async_tensor_all_reduce = false;
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace memwall
