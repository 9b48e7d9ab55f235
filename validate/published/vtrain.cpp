// vTrain's measurements of Megatron-DeepSpeed on DGX A100: GPT in fp16, activations checkpointed, gradients reduced
// after backward without buckets or overlap, ZeRO off. Pipelines are Megatron-LM's 1F1B of that time, which waits for
// the device after each message: the rows say so (fitted half: a pipeline of small layers fills as slowly as hosts that
// run ahead of nothing), and DeepSpeed's engine does not.
//
// What the tables leave open: the vocabulary, taken as GPT-2's 50257 padded to 51200 as the other Megatron table has
// it. The machine's memory does not matter for the time. Of several nodes: the head of the table of one node says four
// adapters of 200 Gbit/s for eight GPUs (800 Gbit/s between nodes in its authors' configurations), and that all
// configurations checkpoint; micro-batches of 64 would not fit otherwise.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "validate/published/tables.h"

namespace memwall {
namespace {

// Columns have other names in the two tables.
struct VtrainColumns {
  const char *gpus, *batch, *microbatch, *width, *heads, *layers, *sequence, *tensor, *data, *pipeline, *milliseconds;
};
constexpr VtrainColumns kSingleNode{"gpus", "global_batch", "microbatch", "hidden", "heads",       "layers",
                                    "seq",  "tp",           "dp",         "pp",     "iter_time_ms"};
constexpr VtrainColumns kMultiNode{"# GPUs",
                                   "global batch",
                                   "micro batch",
                                   "hidden size",
                                   "attention heads",
                                   "# layers",
                                   "sequence length",
                                   "tensor parallelism",
                                   "data parallelism",
                                   "pipeline parallelism",
                                   "iteration time (ms)"};

std::string refusal(const CsvTableRow& row, const VtrainColumns& of) {
  const std::array<std::int64_t, 3> ways{row.integer(of.tensor), row.integer(of.pipeline), row.integer(of.data)};
  for (const std::int64_t way : ways)
    if (way > kMostRanks) return "its ranks are too many";
  if (row.integer(of.gpus) != ways[0] * ways[1] * ways[2]) return "its GPUs are not TP x PP x DP";
  return {};
}

PublishedCase vtrain_case(const CsvTableRow& row, const VtrainColumns& of) {
  PublishedCase c;
  c.name = fmt::format("h {}, {} layers, TP {}, PP {}, DP {}, batch {}, microbatch {}", row.text(of.width),
                       row.text(of.layers), row.text(of.tensor), row.text(of.pipeline), row.text(of.data),
                       row.text(of.batch), row.text(of.microbatch));
  c.gpu = "A100";
  c.why_not = refusal(row, of);
  c.step_seconds = row.number(of.milliseconds) / 1e3;
  c.job = load_training_job("gpt-megatron");
  c.job.model.width = row.integer(of.width);
  c.job.model.heads = row.integer(of.heads);
  c.job.model.layers = row.integer(of.layers);
  c.job.model.longest = c.job.recipe.sequence = row.integer(of.sequence);
  c.job.recipe.data_parallel = static_cast<std::uint32_t>(std::min(row.integer(of.data), kMostRanks));
  c.job.recipe.batch = row.integer(of.microbatch);
  const auto passes = whole_passes(row.integer(of.batch), row.integer(of.data), row.integer(of.microbatch));
  c.job.recipe.accumulation = passes.value_or(1);
  if (!passes && c.why_not.empty()) c.why_not = "its batch is not made of whole microbatches";
  c.job.recipe.checkpoint = ActivationCheckpoint::full;
  ModelParallel& parallel = c.job.recipe.parallel;
  parallel.scatter_gather_tensors = true;
  parallel.async_tensor_all_reduce = false;
  parallel.tensor = std::min(row.integer(of.tensor), kMostRanks);
  parallel.pipeline = std::min(row.integer(of.pipeline), kMostRanks);
  return c;
}

}  // namespace

std::vector<PublishedCase> vtrain_cases(const std::vector<CsvTableRow>& rows) {
  std::vector<PublishedCase> cases;
  for (const CsvTableRow& row : rows) {
    cases.push_back(vtrain_case(row, kSingleNode));
    cases.back().machine = "a100-sxm-80gb";
  }
  return cases;
}

std::vector<PublishedCase> vtrain_multi_node_cases(const std::vector<CsvTableRow>& rows) {
  std::vector<PublishedCase> cases;
  for (const CsvTableRow& row : rows) {
    PublishedCase c = vtrain_case(row, kMultiNode);
    c.machine = "dgx-a100-80gb";
    // Four adapters of 200 Gbit/s for eight GPUs; 0.96 of them, as the machine's file takes of its own eight.
    c.settings = {"link.network.sharers=2", "fabric.network.bus_bandwidth=96GB/s"};
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace memwall
