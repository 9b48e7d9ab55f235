// IBM's fms-fsdp: Llama 2 7B under HSDP on 128 A100 (400 Gbit/s a node) and 96 H100 (800 Gbit/s a node), layers
// compiled.
//
// What the table leaves open, and what its program says: FullyShardedDataParallel with shards inside of a node and
// replicas between nodes, mixed precision with parameters gathered and gradients reduced in bf16 over fp32 shards,
// PyTorch's AdamW; FlashAttention 2; one pass per step.
#include <fmt/format.h>

#include "validate/published/tables.h"

namespace memwall {
namespace {

struct Cluster {
  const char* column;
  const char* gpu;
  const char* machine;
  std::int64_t gpus;
  std::vector<std::string> settings;
};

const std::vector<Cluster>& clusters() {
  static const std::vector<Cluster> known{
      {"a100_128_tok_s_gpu",
       "A100 80 GB",
       "dgx-a100-80gb",
       128,
       {"link.network.bandwidth=12.5GB/s", "link.network.sharers=2", "fabric.network.bus_bandwidth=48GB/s"}},
      {"h100_96_tok_s_gpu",
       "H100 80 GB",
       "hgx-h100",
       96,
       {"link.network.bandwidth=12.5GB/s", "fabric.network.bus_bandwidth=96GB/s"}}};
  return known;
}

std::string fms_workload(const std::string& model) {
  if (model == "7b") return "llama2-7b";
  if (model == "13b") return "llama2-13b";
  return model == "70b" ? "llama2-70b" : "";
}

PublishedCase fms_case(const CsvTableRow& row, const Cluster& cluster) {
  PublishedCase c;
  c.name = fmt::format("Llama 2 {}, {}, batch {}, on {} {}", row.text("model"), row.text("sharding"), row.text("batch"),
                       cluster.gpus, cluster.gpu);
  c.gpu = cluster.gpu;
  c.machine = cluster.machine;
  c.settings = cluster.settings;
  const std::string workload = fms_workload(row.text("model"));
  if (workload.empty()) {
    c.why_not = fmt::format("\"{}\" is not known", row.text("model"));
    return c;
  }
  c.job = load_training_job(workload);
  c.job.recipe.batch = row.integer("batch");
  c.job.recipe.sequence = 4096;
  c.job.recipe.precision = Precision::bf16;
  c.job.recipe.master_parameters = true;
  c.job.recipe.execution = row.text("compile") == "Y" ? ExecutionMode::compiled : ExecutionMode::eager;
  if (row.text("act_ckpt") == "full") c.job.recipe.checkpoint = ActivationCheckpoint::full;
  const std::int64_t replicas = row.text("sharding") == "HSDP" ? cluster.gpus / 8 : 1;
  c.policies = {
      fmt::format("fsdp:version=1,ranks={},replicate={},reduce_dtype=bf16,use_orig_params=1", cluster.gpus, replicas)};
  if (row.text("act_ckpt").find("selective") != std::string::npos)
    c.why_not = "which layers are checkpointed is not stated";
  const double tokens = static_cast<double>(c.job.recipe.batch * c.job.recipe.sequence);
  c.step_seconds = tokens / row.number(cluster.column);
  return c;
}

}  // namespace

std::vector<PublishedCase> fms_cases(const std::vector<CsvTableRow>& rows) {
  std::vector<PublishedCase> cases;
  for (const CsvTableRow& row : rows)
    for (const Cluster& cluster : clusters())
      if (!row.text(cluster.column).empty()) cases.push_back(fms_case(row, cluster));
  return cases;
}

}  // namespace memwall
