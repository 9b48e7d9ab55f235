// How rows of each published table become jobs: one function per table, in a file of its own, with what
// the table leaves open and how it was filled in. Internal to validate/published.
#pragma once

#include <vector>

#include "validate/published/csv_table.h"
#include "validate/published/published.h"

namespace memwall {

std::vector<PublishedCase> torchtune_cases(const std::vector<CsvTableRow>& rows);
std::vector<PublishedCase> megatron_cases(const std::vector<CsvTableRow>& rows);
std::vector<PublishedCase> vtrain_cases(const std::vector<CsvTableRow>& rows);
std::vector<PublishedCase> llmc_cases(const std::vector<CsvTableRow>& rows);

}  // namespace memwall
