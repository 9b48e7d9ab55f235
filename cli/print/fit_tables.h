// The answer of a fit: the value, what stops the next, and what was looked at.
#pragma once

#include <string>
#include <vector>

#include "cli/print/table.h"
#include "study/sweep/fit.h"

namespace memwall {

// The answer first, then a table with each value that was looked at, and these fields of it, as far as it has them.
std::vector<Table> fit_tables(const FitRequest& request, const FitResult& result,
                              const std::vector<std::string>& fields);

// One object: `schema`, `axis`, `wanted` ("largest", "smallest"), `conditions`, `value`, `number`, `unit`, `next` (the
// value that it stops at, with `broken` conditions or `error`), `monotone`, `anomalies`, `scanned`, `probes[]`.
std::string fit_json(const FitRequest& request, const FitResult& result);

}  // namespace memwall
