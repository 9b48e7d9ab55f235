// How rows of each published table become jobs: one function per table, in a file of its own, with what
// the table leaves open and how it was filled in. Internal to validate/published.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "validate/published/csv_table.h"
#include "validate/published/published.h"

namespace memwall {

constexpr std::int64_t kMostRanks = 1000000;  // as workload.proto has it
constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

// Passes per step of one rank: nothing where the batch is not made of whole ones. REQUIRES: all above 0.
inline std::optional<std::int64_t> whole_passes(std::int64_t batch, std::int64_t ranks, std::int64_t microbatch) {
  if (batch % ranks != 0 || batch / ranks % microbatch != 0) return std::nullopt;
  return batch / ranks / microbatch;
}

std::vector<PublishedCase> torchtune_cases(const std::vector<CsvTableRow>& rows);
std::vector<PublishedCase> torchtune_recipe_cases(const std::vector<CsvTableRow>& rows);
std::vector<PublishedCase> qwen_cases(const std::vector<CsvTableRow>& rows);
std::vector<PublishedCase> fms_cases(const std::vector<CsvTableRow>& rows);
std::vector<PublishedCase> torchao_cases(const std::vector<CsvTableRow>& rows);
std::vector<PublishedCase> megatron_cases(const std::vector<CsvTableRow>& rows);
std::vector<PublishedCase> vtrain_cases(const std::vector<CsvTableRow>& rows);
std::vector<PublishedCase> vtrain_multi_node_cases(const std::vector<CsvTableRow>& rows);
std::vector<PublishedCase> bloom_cases(const std::vector<CsvTableRow>& rows);
std::vector<PublishedCase> megatron_bridge_cases(const std::vector<CsvTableRow>& rows);
std::vector<PublishedCase> llmc_cases(const std::vector<CsvTableRow>& rows);
std::vector<PublishedCase> deepspeed_azure_cases(const std::vector<CsvTableRow>& rows);
std::vector<PublishedCase> internevo_cases(const std::vector<CsvTableRow>& rows);
std::vector<PublishedCase> internevo_scope_cases(const std::vector<CsvTableRow>& rows);
std::vector<PublishedCase> h200_offload_cases(const std::vector<CsvTableRow>& rows);
std::vector<PublishedCase> mosaic_cases(const std::vector<CsvTableRow>& rows);
std::vector<PublishedCase> torchtitan_cases(const std::vector<CsvTableRow>& rows);
std::vector<PublishedCase> torchtitan_divided_cases(const std::vector<CsvTableRow>& rows);
std::vector<PublishedCase> fsdp_qlora_cases(const std::vector<CsvTableRow>& rows);
std::vector<PublishedCase> zero_tutorial_cases(const std::vector<CsvTableRow>& rows);
std::vector<PublishedCase> zero_offload_cases(const std::vector<CsvTableRow>& rows);

}  // namespace memwall
