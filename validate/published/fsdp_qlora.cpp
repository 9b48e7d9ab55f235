// Answer.AI's fsdp_qlora: LoRA and QLoRA of Llama 2 under FSDP on pairs of consumer GPUs, by the time of 1,024 samples.
//
// What the table leaves open: bf16, rank 64 beside queries, keys, values and the MLP (its default; the generator
// has attention's output in place of keys), layers checkpointed, AdamW on the adapters. Its program, train.py, drops
// 0.1 of what goes into each adapter, and wraps every module without children whose weight is trained as an FSDP unit
// of its own, beside the layers: each of the two products of an adapter. The rate limiter counts them, too, so that the
// host cannot ask for the next layer before it is nearly there. Transformers' Llama returns its logits in fp32, which
// `output` holds until the step is over, and copies those of all tokens but the last. A batch is of one GPU. Its FSDP
// is given device_id and, low_memory being on, sync_module_states: what wrapping leaves in the allocator's cache is
// there (wrapping=sync). "ddp" is FSDP that shards nothing, which PyTorch calls deprecated in favour of its
// DistributedDataParallel: that is taken. The 3090s sit on an "old" board whose bus is not stated: PCIe 3 with 8 lanes
// each is taken, half of what the machine file has of 16 lanes of the third generation.
#include <fmt/format.h>

#include <algorithm>

#include "validate/published/tables.h"

namespace memwall {
namespace {

constexpr std::int64_t kSamples = 1024;

struct Computer {
  std::string words;  // the row's hardware begins so
  std::string machine;
  std::int64_t gpus;
  std::vector<std::string> settings;
};

const std::vector<Computer>& computers() {
  static const std::vector<Computer> known{{"2x3090", "rtx-3090", 2, {"pcie=6.2GB/s", "nvlink=off"}},
                                           {"2x4090", "rtx-4090", 2, {}},
                                           {"2xA5000", "rtx-a5000", 2, {}},
                                           {"2xA6000Ada", "rtx-6000-ada", 2, {}},
                                           {"4xA100-40GB", "a100-sxm-40gb", 4, {}}};
  return known;
}

const Computer* computer_of(const std::string& hardware) {
  for (const Computer& computer : computers())
    if (hardware.rfind(computer.words, 0) == 0) return &computer;
  return nullptr;
}

std::vector<std::string> qlora_policies(const CsvTableRow& row, std::int64_t gpus) {
  if (row.text("ddp") == "Y") return {fmt::format("ddp:ranks={}", gpus)};
  return {fmt::format(
      "fsdp:version=1,wrapping=sync,ranks={},offload={},units=layers.*+layers.*.*.*.lora_a+layers.*.*.*.lora_b", gpus,
      row.text("cpu_offload") == "N" ? "none" : "cpu")};
}

std::string qlora_refusal(const CsvTableRow& row) {
  if (computer_of(row.text("hardware")) == nullptr)
    return fmt::format("there is no machine file for \"{}\"", row.text("hardware"));
  return {};
}

}  // namespace

std::vector<PublishedCase> fsdp_qlora_cases(const std::vector<CsvTableRow>& rows) {
  std::vector<PublishedCase> cases;
  for (const CsvTableRow& row : rows) {
    PublishedCase c;
    c.name = fmt::format("{}, {} {}, batch {}, length {}{}{}", row.text("hardware"), row.text("model"),
                         row.text("method"), row.text("batch"), row.text("context"),
                         row.text("ddp") == "Y" ? ", ddp" : "", row.text("cpu_offload") != "N" ? ", CPU offload" : "");
    c.why_not = qlora_refusal(row);
    c.job = load_training_job(row.text("model") == "Llama2-70B" ? "llama2-70b" : "llama2-7b");
    c.job.model.longest = c.job.recipe.sequence = row.integer("context");
    c.job.recipe.batch = row.integer("batch");
    c.job.recipe.precision = Precision::bf16;
    c.job.recipe.lora_rank = 64;
    c.job.recipe.lora_dropout = 0.1;
    c.job.recipe.activation_offload = row.text("cpu_offload").find("act") != std::string::npos;
    c.job.recipe.weights_in_nf4 = row.text("method") == "QLoRA";
    c.job.recipe.checkpoint = ActivationCheckpoint::full;
    c.job.recipe.returned_logits = ReturnedLogits::backward;
    c.job.recipe.shifted_logits = true;
    if (const Computer* computer = computer_of(row.text("hardware"))) {
      c.gpu = computer->words;
      c.machine = computer->machine;
      c.settings = computer->settings;
      c.policies = qlora_policies(row, computer->gpus);
      c.step_seconds = row.number("time_s_1024_samples") * static_cast<double>(computer->gpus * c.job.recipe.batch) /
                       static_cast<double>(kSamples);
    }
    if (!row.text("peak_mem_gib").empty()) c.reserved_bytes = row.number("peak_mem_gib") * kGiB;
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace memwall
