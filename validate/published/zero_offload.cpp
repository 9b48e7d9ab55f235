// DeepSpeed's ZeRO-Offload and ZeRO-3 Offload on DGX-2 (V100 32 GB): rates by size of the model, read off pictures.
//
// The table states no batch and no shape of its networks; only the order of its rows is compared. Here a GPT of
// sequences of 1,024 is taken, whose width is that of the papers' configurations nearest in size and whose layers make
// up the number of parameters, checkpointed, with the largest power of two for a micro batch, up to 32, that fits. Rows
// whose 16-bit parameters alone exceed the GPU under stage 2 ran with tensor parallelism beside it, as Megatron's did;
// the table does not say over how many ranks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "validate/published/tables.h"

namespace memwall {
namespace {

std::vector<std::string> offload_policies(const CsvTableRow& row) {
  const std::int64_t gpus = row.integer("gpus"), stage = row.text("policy").rfind("ZeRO-3", 0) == 0 ? 3 : 2;
  if (gpus > 1)
    return {fmt::format("deepspeed:stage={},ranks={},offload_optimizer=cpu{}", stage, gpus,
                        stage == 3 ? ",offload_param=cpu" : "")};
  return {fmt::format("offload:what=optimizer+gradients{},to=host", stage == 3 ? "+parameters" : "")};
}

// ZeRO-Offload (Ren et al. 2021), table 3, and ZeRO-Infinity (Rajbhandari et al. 2021), table 1: hidden sizes of 2,048
// to 12,288 at 1 to 200 billion, 25,600 and more beyond.
std::int64_t offload_width(double billions) {
  if (billions <= 4) return 2304;
  if (billions <= 13) return 4096;
  if (billions <= 40) return 8192;
  if (billions <= 70) return 9216;
  if (billions <= 400) return 16384;
  return 32768;
}

}  // namespace

std::vector<PublishedCase> zero_offload_cases(const std::vector<CsvTableRow>& rows) {
  std::vector<PublishedCase> cases;
  for (const CsvTableRow& row : rows) {
    PublishedCase c;
    const double billions = row.number("params_B");
    const std::int64_t gpus = row.integer("gpus");
    c.name = fmt::format("{} billion on {} GPUs, {}", row.text("params_B"), gpus, row.text("policy"));
    c.gpu = "V100 32 GB";
    c.machine = "dgx-2";
    const bool whole = row.text("policy").rfind("ZeRO-3", 0) != 0;  // parameters are on every GPU
    if (row.text("policy") == "Megatron" || (whole && 2 * billions > 32))
      c.why_not = "over how many ranks its layers are divided is not stated";
    if (gpus > kMostRanks || billions > 1e5) c.why_not = "it is too large";
    c.job = load_training_job("gpt-megatron");
    c.job.model.width = offload_width(billions);
    const auto width = static_cast<double>(c.job.model.width);
    c.job.model.layers = std::max<std::int64_t>(1, std::llround(std::min(billions, 1e5) * 1e9 / (12 * width * width)));
    c.job.model.heads = c.job.model.width / 128;
    c.job.model.vocabulary = 50304;
    c.job.model.longest = c.job.recipe.sequence = 1024;
    c.batches = {32, 16, 8, 4, 2, 1};
    c.policies = offload_policies(row);
    c.rate = row.number("tflops_per_gpu") * 1e12;
    // As the papers count: 8 FLOPs per parameter and token, the second forward among them.
    c.counted_flops = 8 * billions * 1e9 * static_cast<double>(c.job.recipe.sequence);
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace memwall
