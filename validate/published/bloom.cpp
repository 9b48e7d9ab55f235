// The search for BLOOM's layout (February 2022): GPT of 176 to 200 billion parameters under Megatron-DeepSpeed on 320
// to 384 A100 80 GB of Jean Zay, by tensor, pipeline and data parallelism and micro-batch. Memory as nvidia-smi shows
// it, the most of all ranks ("GB" are taken as 1,000 of nvidia-smi's MiB: its source has a row of 80 GB on a card of
// 79.3 GiB); times of the second iteration. The head of the table names two typos of its source. Its text says what
// nvidia-smi showed for the context and kernels of its PyTorch on an A100, 1,573 MiB.
//
// From 25 February on the nodes' PCIe and NUMA settings were right, which made steps 1 to 5 % shorter: another machine,
// to which constants of its own are fitted. Jobs of 320 GPUs and more hung unless launches blocked
// (CUDA_LAUNCH_BLOCKING=1), says the text.
//
// What the table leaves open, from the source's text and from train/tr11-176B-ml/tr11-176B-ml.slurm beside it: layers
// are checkpointed each by itself; pipelines are divided evenly by layers, from "Rebalancing layers" on with embedding
// and loss as a layer each ('type:transformer|embedding'); bf16 is DeepSpeed's BF16_Optimizer, which has main gradients
// in fp32 and divides main parameters as ZeRO-1 does. Where the table says "varies", layers are the multiple of the
// pipeline's ranks that is nearest to the stated size ("had to be tweaked to fit PP and NHIDDEN was fixed"). Heads are
// 64 where the table says "96?", as the source says under "Final round": "all NHEADS=64 (above too)". Dropout is
// Megatron's default.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "validate/published/tables.h"

namespace memwall {
namespace {

constexpr double kThousandMebibytes = 1000.0 * 1024 * 1024;

std::optional<std::int64_t> leading_number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data() || value < 1) return std::nullopt;
  return value;
}

std::int64_t layers_of(const CsvTableRow& row) {
  if (const auto stated = leading_number(row.text("layers"))) return *stated;
  const double h = row.number("hidden"), ranks = row.number("pp");
  const double billions = static_cast<double>(leading_number(row.text("size")).value_or(0));
  const double layers = (billions * 1e9 - row.number("vocab") * h) / (12 * h * h + 13 * h);
  return static_cast<std::int64_t>(std::max(1.0, std::round(layers / ranks)) * ranks);
}

// "96?" is the table's own guess.
std::int64_t heads_of(const CsvTableRow& row) {
  const std::string& text = row.text("heads");
  return text.ends_with('?') ? 64 : leading_number(text).value_or(1);
}

void set_framework(const CsvTableRow& row, Recipe& recipe) {
  ModelParallel& parallel = recipe.parallel;
  parallel.framework = ParallelFramework::deepspeed;
  parallel.async_tensor_all_reduce = false;
  parallel.tensor = std::min(row.integer("tp"), kMostRanks);
  parallel.pipeline = std::min(row.integer("pp"), kMostRanks);
  parallel.embedding_in_split = parallel.loss_in_split = row.text("section") == "Rebalancing layers";
  parallel.distributed_optimizer = row.text("zero_stage") != "0";
  recipe.checkpoint = ActivationCheckpoint::full;
  recipe.launch_blocking = row.integer("gpus") >= 320;
  if (row.text("dtype").starts_with("bf16")) {
    recipe.precision = Precision::bf16;
    parallel.main_gradients = MainGradients::fp32;
  }
}

PublishedCase bloom_case(const CsvTableRow& row) {
  PublishedCase c;
  c.name = fmt::format("{}: {}, h {}, {} heads, TP {}, PP {}, DP {}, batch {}, microbatch {}, ZeRO-{}",
                       row.text("section"), row.text("size"), row.text("hidden"), row.text("heads"), row.text("tp"),
                       row.text("pp"), row.text("dp"), row.text("gbs"), row.text("mbs"), row.text("zero_stage"));
  c.gpu = row.text("notes") < std::string("02-25") ? "A100 80 GB" : "A100 80 GB since 25 February";
  c.machine = "jean-zay-a100";
  c.settings = {"gpu.hbm.unavailable=1573MiB"};
  c.job = load_training_job("gpt-megatron");
  c.job.model.width = row.integer("hidden");
  c.job.model.heads = heads_of(row);
  c.job.model.layers = layers_of(row);
  c.job.model.vocabulary = row.integer("vocab");
  c.job.model.longest = c.job.recipe.sequence = row.integer("seq");
  c.job.recipe.data_parallel = static_cast<std::uint32_t>(std::min(row.integer("dp"), kMostRanks));
  c.job.recipe.batch = row.integer("mbs");
  const auto passes = whole_passes(row.integer("gbs"), row.integer("dp"), row.integer("mbs"));
  c.job.recipe.accumulation = passes.value_or(1);
  set_framework(row, c.job.recipe);
  if (!passes) c.why_not = "its batch is not made of whole micro-batches";
  if (row.integer("gpus") != row.integer("dp") * row.integer("tp") * row.integer("pp"))
    c.why_not = "its GPUs are not TP x PP x DP";
  if (!row.text("sec_per_iter").empty()) c.step_seconds = row.number("sec_per_iter");
  if (row.text("mem_gb") == "OOM")
    c.ran = false;
  else if (!row.text("mem_gb").empty())
    c.device_bytes = row.number("mem_gb") * kThousandMebibytes;
  return c;
}

}  // namespace

std::vector<PublishedCase> bloom_cases(const std::vector<CsvTableRow>& rows) {
  std::vector<PublishedCase> cases;
  for (const CsvTableRow& row : rows) cases.push_back(bloom_case(row));
  return cases;
}

}  // namespace memwall
