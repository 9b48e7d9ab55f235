// InternEvo's 7B on nodes of eight A100 80 GB with four adapters of 100 Gbit/s: ZeRO stage 1 over all ranks
// ("zero1=-1") or within groups of 8, activations checkpointed or not. A step takes micro_bsz x micro_num x length /
// tokens per GPU and second.
//
// "tp2" rows have micro-batches of 4 sequences, says the head of the table of scopes, and two ranks share each layer.
//
// What the tables leave open: InternLM-7B's own numbers (inner width 11,008, vocabulary 103,168 as the table says,
// biases of attention), bf16 with fp32 main parameters, flash attention, the fused Adam of apex. The table of scopes is
// measured without checkpointing and without packing, 2 sequences four times per step. Its hybrid optimizer reduces in
// buckets over all ranks while backward runs; then each rank of a scope broadcasts what it has updated, one after the
// other (solver/optimizer/hybrid_zero_optim.py, broadcast_params).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "validate/published/tables.h"

namespace memwall {
namespace {

// `replicas`: of the tensor-parallel group; `scope`: of them those that share the optimizer states.
std::vector<std::string> internevo_policies(std::int64_t replicas, std::int64_t scope) {
  return {fmt::format("deepspeed:stage=1,ranks={},partition_ranks={},broadcast_partitions=1,overlap_comm=1", replicas,
                      std::clamp<std::int64_t>(scope, 2, std::max<std::int64_t>(replicas, 2)))};
}

PublishedCase internlm(std::int64_t replicas, std::int64_t scope) {
  PublishedCase c;
  c.gpu = "A100 80 GB";
  c.machine = "dgx-a100-80gb";
  // Four adapters of 100 Gbit/s for eight GPUs; 0.96 of them, as the machine's file takes of its own eight.
  c.settings = {"link.network.bandwidth=12.5GB/s", "link.network.sharers=2", "fabric.network.bus_bandwidth=48GB/s"};
  c.job = load_training_job("llama2-7b");
  c.job.model.vocabulary = 103168;
  c.job.model.query_key_value_bias = true;
  c.job.model.longest = c.job.recipe.sequence = 2048;
  c.job.recipe.precision = Precision::bf16;
  c.job.recipe.master_parameters = true;
  c.job.recipe.optimizer_kernels = OptimizerKernels::fused;
  c.policies = internevo_policies(replicas, scope);
  return c;
}

// The number behind `word` in "(tp=2, zero1=-1)"; nothing where there is none above 0.
std::optional<std::int64_t> number_behind(const std::string& config, const std::string& word) {
  const std::size_t at = config.find(word);
  if (at == std::string::npos) return std::nullopt;
  std::int64_t value = 0;
  const char* const begin = config.data() + at + word.size();
  const auto [end, error] = std::from_chars(begin, config.data() + config.size(), value);
  if (error != std::errc() || end == begin || value < 1) return std::nullopt;
  return value;
}

// A GPU's tokens are those of its tensor-parallel group over the group's ranks.
double internevo_step_seconds(const TrainingJob& job, double tokens_per_second) {
  return static_cast<double>(job.recipe.batch * job.recipe.accumulation * job.recipe.sequence) /
         (tokens_per_second * static_cast<double>(job.recipe.parallel.tensor));
}

// Layers are those of one rank with divided products (flash_attn's ColumnParallelLinear and RowParallelLinear), which
// torchtitan's are as well: Megatron-LM's own kernels are not among them. The loss is flash_attn's fused kernel
// (model/loss.py, FlashGPTLMLoss), taken for Transformer Engine's. Gradients are in the parameters' type.
void set_tensor(TrainingJob& job, std::int64_t tensor) {
  if (tensor == 1) return;
  job.recipe.parallel.tensor = std::min(tensor, kMostRanks);
  job.recipe.parallel.framework = ParallelFramework::torchtitan;
  job.recipe.parallel.cross_entropy_loss_fusion = true;
}

}  // namespace

std::vector<PublishedCase> internevo_cases(const std::vector<CsvTableRow>& rows) {
  std::vector<PublishedCase> cases;
  for (const CsvTableRow& row : rows) {
    PublishedCase c = internlm(row.integer("gpus"), row.integer("zero1"));
    c.name = fmt::format("{} GPUs, {} x {} sequences{}", row.text("gpus"), row.text("micro_num"), row.text("micro_bsz"),
                         row.text("act_ckpt") == "TRUE" ? ", checkpointed" : "");
    c.job.model.longest = c.job.recipe.sequence = row.integer("seq");
    c.job.recipe.batch = row.integer("micro_bsz");
    c.job.recipe.accumulation = row.integer("micro_num");
    if (row.text("act_ckpt") == "TRUE") c.job.recipe.checkpoint = ActivationCheckpoint::full;
    if (row.integer("tp") != 1) c.why_not = "tensor parallelism is not implemented";
    if (row.integer("gpus") > kMostRanks) c.why_not = "its ranks are too many";
    c.step_seconds = internevo_step_seconds(c.job, row.number("tokens_per_gpu_s"));
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<PublishedCase> internevo_scope_cases(const std::vector<CsvTableRow>& rows) {
  std::vector<PublishedCase> cases;
  for (const CsvTableRow& row : rows) {
    const std::string& config = row.text("config");
    const std::int64_t gpus = row.integer("gpus"), tensor = number_behind(config, "tp=").value_or(1);
    const std::int64_t replicas = std::max<std::int64_t>(gpus / std::min(tensor, kMostRanks), 1);
    PublishedCase c = internlm(replicas, number_behind(config, "zero1=").value_or(replicas));
    c.name = fmt::format("{}, {} GPUs", config, gpus);
    c.job.recipe.batch = tensor == 1 ? 2 : 4;
    c.job.recipe.accumulation = 4;
    set_tensor(c.job, tensor);
    if (gpus % tensor != 0) c.why_not = "its GPUs are not TP x DP";
    if (gpus > kMostRanks) c.why_not = "its ranks are too many";
    c.step_seconds = internevo_step_seconds(c.job, row.number("tokens_per_gpu_s"));
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace memwall
