// Published measurements beside predictions, for people and programs, and the page that holds them.
#pragma once

#include <string>
#include <vector>

#include "cli/print/table.h"
#include "validate/published/published.h"

namespace memwall {

// Errors by table and metric, the rows, the ablations, and what is not predicted.
std::vector<Table> published_tables(const std::vector<PublishedResult>& results);

}  // namespace memwall
