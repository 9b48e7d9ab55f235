// Two memory plans side by side.
#pragma once

#include <string>
#include <vector>

#include "cli/print/table.h"
#include "traces/plan/plan_compare.h"

namespace memwall {

std::vector<Table> plan_comparison_tables(const PlanComparison& comparison);
// One JSON object: `schema`, the plans, and the tables.
std::string plan_comparison_json(const PlanComparison& comparison);

}  // namespace memwall
