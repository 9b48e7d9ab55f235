// Published measurements beside predictions, for people and programs, and the page that holds them.
#pragma once

#include <string>
#include <vector>

#include "cli/print/table.h"
#include "validate/published/fit_constants.h"
#include "validate/published/published.h"

namespace memwall {

// Errors by table and metric, those of judged tables, the rows, the ablations, and what is not predicted.
std::vector<Table> published_tables(const std::vector<PublishedResult>& results);

// Constants as they were just fitted, by table and GPU.
Table fitted_table(const std::vector<FittedRows>& fitted);

}  // namespace memwall
