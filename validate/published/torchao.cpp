// torchao's table of activation checkpointing beside float8: Llama 3 8B under torchtitan on eight H100, 4,096 tokens.
//
// The table states no batch, so that only the order of its rows counts. What else it leaves open: FSDP2 with bf16
// parameters over fp32 shards; "selective layer 2" checkpoints every second layer. The prototype without a compiler
// ("float8nocompile") is not predicted.
#include <fmt/format.h>

#include <algorithm>

#include "validate/published/tables.h"

namespace memwall {
namespace {

constexpr std::int64_t kRanks = 8, kTokens = 4096;

std::vector<std::string> torchao_policies(const std::string& checkpoint) {
  std::vector<std::string> all{fmt::format("fsdp:ranks={},reduce_dtype=fp32", kRanks)};
  if (checkpoint == "full") all.push_back("torchtitan:mode=full");
  if (checkpoint == "selective_layer_2") all.push_back("torchtitan:mode=selective,selective_ac_option=2");
  return all;
}

}  // namespace

std::vector<PublishedCase> torchao_cases(const std::vector<CsvTableRow>& rows) {
  std::vector<PublishedCase> cases;
  for (const CsvTableRow& row : rows) {
    PublishedCase c;
    const std::string& configuration = row.text("config");
    const bool fp8 = configuration.find("float8") != std::string::npos;
    c.name = fmt::format("{}, checkpointed: {}", configuration, row.text("act_ckpt"));
    c.gpu = "H100 80 GB";
    c.machine = "hgx-h100";
    if (configuration.find("nocompile") != std::string::npos)
      c.why_not = "its kernels of float8 without a compiler are not implemented";
    c.job = load_training_job("llama3-8b");
    c.job.recipe.sequence = kTokens;
    c.job.recipe.batch = 1;
    c.job.recipe.precision = fp8 ? Precision::fp8 : Precision::bf16;
    c.job.recipe.execution = fp8 ? ExecutionMode::compiled : ExecutionMode::eager;
    c.job.recipe.master_parameters = true;
    c.policies = torchao_policies(row.text("act_ckpt"));
    c.batches = {1};
    c.counted_flops = static_cast<double>(kTokens);  // so that the rate is one of tokens
    c.rate = row.number("tokens_per_s");
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace memwall
