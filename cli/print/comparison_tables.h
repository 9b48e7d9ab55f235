// A comparison of two runs as tables, the answer in words first.
#pragma once

#include <vector>

#include "cli/print/table.h"
#include "traces/run/analysis/compare.h"

namespace memwall {

std::vector<Table> comparison_tables(const Comparison& comparison);

}  // namespace memwall
